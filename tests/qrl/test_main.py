"""`python -m qrl`."""

import pytest

import qrl.scripts.train_agent
from qrl.__main__ import commands, main
from tests.test_packaging import _commands as installed_commands


def test_the_commands_are_those_that_are_installed() -> None:
    assert sorted(commands()) == sorted(installed_commands())


def test_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    lines = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
    meaning = (qrl.scripts.train_agent.__doc__ or "").splitlines()[0]
    assert ["train-agent", meaning] in lines
    assert [name for name, *_ in filter(None, lines) if name in commands()] == sorted(commands())


def test_a_command_runs(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["train-agent", "--version"])
    assert capsys.readouterr().out == f"train-agent (quasimetric {qrl.__version__})\n"
    assert main(["inspect-dataset", "nowhere.npz"]) == 2


def test_an_unknown_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train-agnt"]) == 2
    assert "error: unknown command 'train-agnt' (did you mean 'train-agent'?)" in capsys.readouterr().err
