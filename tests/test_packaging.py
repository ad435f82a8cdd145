"""What a user gets who installs a wheel, and which part may import which."""

import ast
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_the_wheel_holds_everything_and_nothing_else(tmp_path: Path) -> None:
    names = ("qrl", "envs", "agents", "configs", "scripts", "setup.cfg", "pyproject.toml", "README.md", "LICENSE")
    for name in names:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / name, symlinks=True)
        else:
            shutil.copy(ROOT / name, tmp_path / name)
    build = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--quiet", "-w", "out", "."]
    run = subprocess.run(build, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    (wheel,) = (tmp_path / "out").iterdir()
    files = set(zipfile.ZipFile(wheel).namelist())
    assert {name.split("/")[0] for name in files if ".dist-info" not in name} == {"qrl"}
    expected = set()
    for folder in ("", "envs", "agents", "configs", "scripts"):  # linked folders are not walked into by themselves
        for path in (ROOT / "qrl" / folder).rglob("*"):
            if path.suffix in {".py", ".txt", ".yaml", ".typed"}:
                expected.add(str(path.relative_to(ROOT)))
    assert {name for name in files if ".dist-info" not in name} == expected


@pytest.mark.parametrize("folder", ["qrl", "envs", "agents"])
def test_imports_go_one_way(folder: str) -> None:
    """Agents -> envs, models; envs -> qrl.common; models import neither."""
    for path in (ROOT / folder).rglob("*.py"):
        for name in _imports(path):
            assert name.split(".")[0] not in {"envs", "agents", "scripts", "tests", "benchmarks"}, f"{path}: {name}"
            below = not name.startswith(("qrl.envs", "qrl.agents", "qrl.scripts"))
            if folder == "qrl" and path.name != "__init__.py":
                assert below, f"{path}: {name}"
            if folder == "envs":
                assert name.split(".")[0] != "torch", path
                assert not name.startswith("qrl.") or name.startswith(("qrl.common", "qrl.envs")), f"{path}: {name}"


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


HEAVY = ("torch", "minigrid", "matplotlib", "scipy")


@pytest.mark.parametrize(
    ("package", "heavy"),
    [
        ("qrl", HEAVY),
        ("qrl.envs", HEAVY),
        ("qrl.agents.runs.training", ("scipy.stats", "torch._dynamo")),
        ("qrl.agents.runs.graph_training", ("scipy.stats", "torch._dynamo")),
    ],
)
def test_importing_a_package_is_light(package: str, heavy: tuple[str, ...]) -> None:
    program = f"import sys, {package}; print([name for name in {heavy} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"
