"""What all commands share."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import qrl
from qrl.agents.runs.settings import TrainSettings
from qrl.common.commands import add_plugin_argument, add_settings_arguments, check_interrupted, command, new_parser
from qrl.common.errors import ConfigError
from qrl.common.settings import Settings
from qrl.envs.collector import CollectorSettings


@pytest.mark.parametrize("length", [1, 100_000])  # written at the end of the command, or before
def test_a_closed_pipe_ends_a_command_quietly(length: int) -> None:
    """As in `list-models | head -1`: no traceback."""
    program = (
        "import sys; from qrl.common.commands import command\n"
        f"sys.exit(command(lambda argv: print('x' * {length}))([]))"
    )
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed:
        run = subprocess.run(
            [sys.executable, "-c", program], stdout=closed, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (run.returncode, run.stderr) == (141, "")


@pytest.mark.parametrize(
    ("outcome", "status", "message"),
    [
        (None, 0, ""),
        (143, 143, ""),
        (ConfigError("lr: too high"), 2, "error: lr: too high\n"),
        (KeyboardInterrupt(), 130, "interrupted\n"),
        (RuntimeError("building a validator: KeyboardInterrupt: "), 130, "interrupted\n"),
    ],
)
def test_the_exit_status(
    outcome: int | BaseException | None, status: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    @command
    def main(argv: object) -> int | None:
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    assert main([]) == status
    assert capsys.readouterr().err == message


def test_errors_of_the_program_itself_keep_their_traceback() -> None:
    @command
    def main(argv: object) -> int | None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        main([])


def refused(
    arguments: list[str], capsys: pytest.CaptureFixture[str], settings: type[Settings] = CollectorSettings
) -> str:
    parser = new_parser("collect", "")
    add_settings_arguments(parser, settings)
    with pytest.raises(SystemExit) as exit_:
        parser.parse_intermixed_args(arguments)
    assert exit_.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "suggestion"),
    [
        (["--layout", "traps"], "did you mean layout=traps?"),
        (["--layout=traps"], "did you mean layout=traps?"),
        (["--max-step", "30"], "did you mean max_steps=30?"),
        (["--device", "cuda"], "(settings are given as key=value; --help lists them)"),
        (["seed=1", "--max-steps", "30", "epsilon=0.5"], "did you mean max_steps=30?"),
        (["--max-steps", "epsilon=0.5"], "did you mean max_steps=VALUE?"),
        (["--max-steps"], "did you mean max_steps=VALUE?"),
    ],
)
def test_options_that_should_be_settings(
    arguments: list[str], suggestion: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert suggestion in refused(arguments, capsys)


@pytest.mark.parametrize(
    ("arguments", "suggestion"),
    [
        (["--lr", "0.1"], "learner.lr=0.1"),
        (["--model", "mrn"], "model.name=mrn"),
        (["--width=3"], "model.width=3"),
        (["--learner.batch-size", "8"], "learner.batch_size=8"),
    ],
)
def test_suggested_keys_exist(arguments: list[str], suggestion: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert f"did you mean {suggestion}?" in refused(arguments, capsys, TrainSettings)
    TrainSettings.load(overrides=[suggestion])


def test_other_mistakes_have_no_suggestion(capsys: pytest.CaptureFixture[str]) -> None:
    assert "did you mean" not in refused(["--config"], capsys)


def test_plugins_are_imported_before_parsing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "noted_plugin.py").write_text("")
    monkeypatch.chdir(tmp_path)
    parser = new_parser("x", "")
    add_plugin_argument(parser, ["--plugin", "noted_plugin"])
    assert "noted_plugin" in sys.modules
    add_plugin_argument(new_parser("x", ""), ["--plugin"])  # the parser reports it later


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        new_parser("train-agent", "").parse_args(["--version"])
    assert exit_.value.code == 0
    assert capsys.readouterr().out == f"train-agent (quasimetric {qrl.__version__})\n"


def test_an_interrupt_that_is_swallowed_is_raised_at_the_next_check(capsys: pytest.CaptureFixture[str]) -> None:
    @command
    def main(argv: Sequence[str] | None = None) -> None:
        with contextlib.suppress(KeyboardInterrupt):  # as compiled code does
            signal.raise_signal(signal.SIGINT)
        check_interrupted()
        print("nobody has noticed")

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # other tests may have left another one
    try:
        assert main([]) == 130
        assert capsys.readouterr() == ("", "interrupted\n")
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    check_interrupted_after = command(lambda argv: check_interrupted())
    assert check_interrupted_after([]) == 0  # a new command starts without the interrupts of another
