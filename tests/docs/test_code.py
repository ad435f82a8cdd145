"""The code of all pages: `python` and `sh` blocks are run as they stand, the commands of `bash` blocks are checked."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from configparser import ConfigParser
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

from docs.hooks.commands import parser_of
from qrl.__main__ import commands
from qrl.agents.evaluation.metrics import METRICS
from qrl.agents.studies.study import Study
from tests.docs.blocks import PAGES, ROOT, blocks, name_of, pages_with

ELSEWHERE = ROOT / "docs" / "other-libraries.md"  # run by test_other_libraries.py, where these libraries are installed


def test_every_block_says_what_it_is() -> None:
    for page in PAGES:
        for block in blocks(page):
            assert block.language in {"python", "sh", "bash", "text"}, f"{page}\n{block.code}"


# Pages show trainings that are worth their time; here they are a few steps.
SHORT_TRAINING = """#!/bin/bash
case " $* " in
  *" --resume "* | *" --help "* | *" --dry-run "*) exec COMMAND "$@" ;;
  *) exec COMMAND "$@" learner.epochs=0.01 learner.min_steps=20 model.width=32 compile=off ;;
esac
"""


@pytest.fixture
def short_trainings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands on the path, with those that train cut short."""
    installed, folder = Path(sys.executable).parent, tmp_path / "short"
    folder.mkdir()
    for name in ("train-agent", "train-graph"):
        (folder / name).write_text(SHORT_TRAINING.replace("COMMAND", str(installed / name)))
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", os.pathsep.join([str(folder), str(installed), os.environ["PATH"]]))


@pytest.fixture
def _forgotten(restored_registry: None) -> Iterator[None]:
    """Forget what a page registers."""
    metrics = list(METRICS)
    yield
    METRICS[:] = metrics


@pytest.mark.usefixtures("_forgotten", "short_trainings")
@pytest.mark.parametrize("page", [page for page in pages_with("python", "sh") if page != ELSEWHERE], ids=name_of)
def test_every_example_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The blocks of a page share a folder and, as the cells of a notebook, their variables."""
    (tmp_path / "page").mkdir()
    monkeypatch.chdir(tmp_path / "page")
    main = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", main)
    for block in blocks(page):
        output = ""
        if block.language == "sh":
            run = subprocess.run(["bash", "-euc", block.code], capture_output=True, text=True, check=False)
            assert run.returncode == 0, f"{block.code}\n{run.stderr}"
            output = run.stdout
        elif block.language == "python":
            if named := re.match(r"# (\w+\.py)\n", block.code):  # "save this as"
                Path(named[1]).write_text(block.code)
            exec(compile(block.code, name_of(page), "exec"), vars(main))
            output = capsys.readouterr().out
        assert block.output is None or output.endswith(block.output), output


RECORDER = """#!/bin/bash
printf '%s\\x1f' "${0##*/}" "$@" >> "$CALLS"
printf '\\x1e' >> "$CALLS"
"""
TOOLS = ("make", "pip", "python", "ray")  # that pages call beside qrl's commands


def calls_of(code: str, folder: Path) -> list[list[str]]:
    """The calls that a shell makes for this code; none of them does anything."""
    stubs, calls = folder / "stubs", folder / "calls"
    stubs.mkdir()
    for name in (*commands(), *TOOLS):
        (stubs / name).write_text(RECORDER)
        (stubs / name).chmod(0o755)
    (folder / ".venv" / "bin").mkdir(parents=True)
    (folder / ".venv" / "bin" / "activate").touch()
    environment = {"PATH": str(stubs), "CALLS": str(calls)}
    shell = ["/bin/bash", "-euc", code]
    run = subprocess.run(shell, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return [call.split("\x1f")[:-1] for call in calls.read_text().split("\x1e")[:-1]]


@pytest.mark.usefixtures("restored_registry")
@pytest.mark.parametrize("page", pages_with("bash"), ids=name_of)
def test_every_command_is_valid(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.syspath_prepend(str(ROOT / "examples" / "plugin"))
    monkeypatch.delitem(sys.modules, "qrl_spiral", raising=False)  # forget it afterwards
    for number, block in enumerate(blocks(page)):
        if block.language == "bash":
            (tmp_path / str(number)).mkdir()
            check_calls(block.code, tmp_path / str(number))


def check_calls(code: str, folder: Path) -> None:
    for name, *arguments in calls_of(code, folder):
        check_call(name, arguments)


def check_call(name: str, arguments: Sequence[str]) -> None:
    if name in commands():
        check_command(name, arguments)
    elif name == "make":
        makefile = (ROOT / "Makefile").read_text()
        assert all(f"\n{target}:" in makefile for target in arguments), arguments
    elif name == "python":
        is_module = arguments[0] == "-m"
        assert find_spec(arguments[1]) if is_module else (ROOT / arguments[0]).is_file(), arguments
    elif name == "pip":
        config = ConfigParser()
        config.read(ROOT / "setup.cfg")
        extras = arguments[-1].removeprefix(".").strip("[]")
        assert not extras or extras in config["options.extras_require"], arguments
        assert list(arguments[:-1]) in (["install", "-e"], ["install", "-c", "constraints.txt", "-e"])


def check_command(name: str, arguments: Sequence[str]) -> None:
    """Parse with the command's own parser, and load the settings that the arguments name."""
    parser, parse = parser_of(name, arguments)
    args = parse(arguments)
    if name == "sweep-agents":
        Study.load(args.study, args.overrides)
    elif parser.settings is not None:
        parser.settings.load(args.config, args.overrides)


@pytest.mark.parametrize(
    "code",
    [
        "train-agent --resumed RUN",
        "train-agent learner.rate=1",
        "train-agent learner.name=qrl learner.polyak=0.9",
        "for s in 0 1; do train-agent --config nothing seed=$s; done",
        "sweep-agents objectives settings.model.with=3",
        "make everything",
        "pip install -e '.[nothing]'",
        "python docs/nothing.py",
        "unknown-command",
    ],
)
def test_mistakes_are_found(code: str, tmp_path: Path) -> None:
    with pytest.raises((SystemExit, ValueError, AssertionError)):
        check_calls(code, tmp_path)
