from pathlib import Path

import pytest

from qrl.scripts.list_models import main


def test_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    rows = {line.split()[0]: line for line in capsys.readouterr().out.split("\n\n")[0].splitlines()}
    for name, quasimetric, head, whole in [
        ("iqe", "guaranteed", "1", "10,542,081"),
        ("iqe-maxmean", "guaranteed", "1", "10,542,081"),
        ("iqe-sum", "guaranteed", "0", "10,542,080"),
        ("mrn", "no", "98,816", "10,640,896"),
        ("mrn-fixed", "guaranteed", "98,816", "10,640,896"),
        ("wide-norm", "guaranteed", "524,577", "11,066,657"),
        ("deep-norm", "no", "58,113", "10,600,193"),
        ("deep-norm-fixed", "guaranteed", "58,049", "10,600,129"),
        ("pqe-lh", "guaranteed", "12,416", "10,554,496"),
        ("pqe-gg", "guaranteed", "340,352", "10,882,432"),
        ("unconstrained", "no", "-", "9,009,936"),
        ("unconstrained-state", "no", "-", "9,006,852"),
    ]:
        cells = rows[name].split()
        assert quasimetric in cells
        assert cells[-3:] == [head, whole, "qrl"]


def test_aliases_are_listed_below_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    table, aliases, _ = capsys.readouterr().out.split("\n\n")
    assert "dot-disc" not in table
    assert "dot with fixed readout: dot-disc, dot-disc-sigmoid, dot-dist, dot-dist-exp, dot-dist-sq\n" in aliases
    assert "unconstrained with fixed goal_kind and readout: unconstrained-state-disc, " in aliases
    assert len(aliases.splitlines()) == 3


def test_one_alias(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dot-disc"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("dot-disc (dot product, from qrl, alias of dot with readout=disc)\n")
    assert "dist, dist-exp, dist-sq, disc, disc-sigmoid (default: disc)" in out


def test_one_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["iqe-sum"]) == 0
    out = capsys.readouterr().out
    assert "dim_per_component  intervals in each union (l) (default: 8)" in out
    assert "(default: sum)" in out
    assert main(["iqe-summ"]) == 2
    assert "did you mean 'iqe-sum'" in capsys.readouterr().err


def test_the_plugin_is_loaded_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], restored_registry: None
) -> None:
    (tmp_path / "listed_plugin.py").write_text(
        "from qrl import register_head\nfrom qrl.heads import Euclidean\nregister_head('listed')(Euclidean)\n"
    )
    monkeypatch.chdir(tmp_path)
    assert main(["listed", "--plugin", "listed_plugin"]) == 0
    assert capsys.readouterr().out.startswith("listed (Euclidean, from qrl)")


def test_a_missing_plugin_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--plugin", "no_such_module"]) == 2
    assert "the plugin no_such_module could not be loaded" in capsys.readouterr().err
