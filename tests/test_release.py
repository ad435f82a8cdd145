"""The part of `make release-check` that needs neither time nor a network."""

from pathlib import Path

import pytest

import qrl
from tests import release


def test_the_version_is_the_same_everywhere(tmp_path: Path) -> None:
    assert release.Release(tmp_path).version().startswith(qrl.__version__)


@pytest.mark.parametrize(
    ("citation", "changelog", "message"),
    [
        ("version: 9.0", f"## {qrl.__version__}\n", "CITATION.cff has version 9.0"),
        (f"version: {qrl.__version__}", "# Changelog\n\n## 9.0\n", "the first section of CHANGELOG.md is 9.0"),
    ],
)
def test_a_failing_step_ends_the_list(
    citation: str,
    changelog: str,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "CITATION.cff").write_text(citation)
    (tmp_path / "CHANGELOG.md").write_text(changelog)
    monkeypatch.setattr(release, "ROOT", tmp_path)
    assert release.main() == 1
    assert capsys.readouterr().out == f"[failed] the version is the same everywhere: {message}\n"


def test_what_is_still_to_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release, "ROOT", tmp_path)
    (tmp_path / "CITATION.cff").write_text(f"version: {qrl.__version__}\ndate-released: 2030-01-01")
    (tmp_path / "CHANGELOG.md").write_text(f"## {qrl.__version__} (unreleased)\n")
    assert release.Release(tmp_path).version() == f"{qrl.__version__}; still to be written: the date in CHANGELOG.md"


def test_the_demo_makes_what_the_check_looks_for() -> None:
    makefile = (release.ROOT / "Makefile").read_text()
    for name in release.DEMO:
        assert f"$(DEMO)/{name.partition('/')[0]}" in makefile
