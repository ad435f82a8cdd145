"""What a shell is offered: the commands are asked as argcomplete's shell code asks them."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from qrl.__main__ import commands
from qrl.agents.learners.registry import builtin_learners, list_learners
from qrl.envs.worlds.registry import builtin_worlds
from qrl.registry import MODELS, builtin_names, list_q_models

ROOT = Path(__file__).parents[2]
RUN = "runs/first"
LINES = {
    "train-agent --re": ["--resume "],
    "train-agent see": ["seed="],
    "train-agent model.name=iq": ["iqe", "iqe-maxmean", "iqe-sum"],
    "train-agent learner.name=q": ["qrl "],
    "train-agent learner.name=qrl learner.eps": ["learner.epsilon="],  # a key of that learner only
    "train-agent learner.eps": [""],
    "train-agent seed=1 --force --plugin nothing dataset=d learner.name=i": ["iql "],
    "train-agent logger=tensorboard,w": ["tensorboard,wandb "],
    "train-agent compile=": ["auto", "on", "off"],
    "train-agent learner.standardize=": ["true", "false"],
    "train-agent dataset=da": ["data.npz "],
    "train-agent collector.world=ma": ["maze "],
    "train-agent collector.layout=c": ["corridor "],
    "train-agent collector.world=maze collector.world.si": ["collector.world.size="],
    "train-agent --config qui": ["quick "],
    "train-agent --config=qui": ["quick "],
    "train-agent --resume ru": ["runs/"],
    "train-agent --resume runs/": ["runs/deeper/", f"{RUN}"],
    "train-agent --dry-run --init runs/f": [f"{RUN} "],
    "train-graph learner.name=": ["regression "],
    "train-graph graph.kind=random-b": ["random-block "],
    "collect-dataset out.npz world=un": ["unseen-doors "],
    "train-graph --config random-": ["random-quick "],
    "collect-graph out.npz kind=random-s": ["random-sparse "],
    "sweep-agents smo": ["smoke "],
    "sweep-agents smoke --jobs 2 ou": ["out="],
    "evaluate-planning runs/f": [f"{RUN} "],
    "evaluate-planning --protocol ": ["paper", "exhaustive"],
    "compare-agents out.html --force runs/f": [f"{RUN} "],
    "explore-agents out.html runs/first runs/f": [f"{RUN} "],
    "list-models mrn": ["mrn", "mrn-fixed"],
    "list-learners gc": ["gcbc "],
    "list-worlds mi": ["minigrid "],
    "inspect-dataset --pic": ["--picture "],
    "report-sweep --o": ["--out "],
    "train-agent 'unclosed": [""],
}
# Asks for each line in a fork of one process, as starting Python takes most of the time.
PROGRAM = """
import importlib, json, os, sys
import argcomplete, qrl.agents.runs.problems, qrl.agents.studies.settings

for line in json.load(sys.stdin):
    if os.fork() == 0:
        words = {"COMP_LINE": line, "COMP_POINT": str(len(line)), "_ARGCOMPLETE_STDOUT_FILENAME": "offered"}
        os.environ |= words | {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_COMP_WORDBREAKS": " =:"}
        sys.argv = [line.split()[0]]
        importlib.import_module("qrl.scripts." + line.split()[0].replace("-", "_")).main()
        os._exit(9)
    status = os.wait()[1]
    with open("offered") as file:
        print(json.dumps([line, status, file.read().split("\\013")]))
assert "torch" not in sys.modules
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("completion")
    (folder / RUN).mkdir(parents=True)
    (folder / RUN / "config.yaml").touch()
    (folder / "runs" / "deeper").mkdir()
    (folder / "data.npz").touch()
    return folder


@pytest.fixture(scope="module")
def offered(folder: Path) -> dict[str, list[str]]:
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        input=json.dumps(list(LINES)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    answers = [json.loads(line) for line in run.stdout.splitlines()]
    assert all(status == 0 for _, status, _ in answers), run.stderr
    return {line: words for line, _, words in answers}


@pytest.mark.parametrize(("line", "expected"), LINES.items())
def test_what_is_offered(offered: dict[str, list[str]], line: str, expected: list[str]) -> None:
    assert offered[line] == expected


def test_every_command_is_asked() -> None:
    assert {line.split()[0] for line in LINES} == set(commands())


def test_a_key_press_imports_no_torch(folder: Path) -> None:
    """Nor a plugin: "nothing" does not exist, and completing goes on."""
    line = "train-agent --plugin nothing model.name="
    request = {"COMP_LINE": line, "COMP_POINT": str(len(line)), "_ARGCOMPLETE_STDOUT_FILENAME": "alone"}
    environment = os.environ | request | {"_ARGCOMPLETE": "1", "PYTHONPATH": str(ROOT)}
    program = "from qrl.scripts.train_agent import main; main()"
    run = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", program], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    imported = {line.rpartition("|")[2].strip() for line in run.stderr.splitlines()}
    assert "pydantic" in imported
    assert not {"torch", "matplotlib", "gymnasium", "tensorboard"} & imported
    assert len((folder / "alone").read_text().split("\013")) == len(builtin_names())


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_in_bash(folder: Path) -> None:
    """The shell code of `python -m qrl --completion` completes a command by asking it."""
    code = subprocess.run([sys.executable, "-m", "qrl", "--completion"], capture_output=True, text=True, check=True)
    wrapper = folder / "bin" / "list-models"
    wrapper.parent.mkdir()
    wrapper.write_text(f"#!{sys.executable}\nfrom qrl.scripts.list_models import main\nmain()\n")
    wrapper.chmod(0o755)
    script = (
        f"{code.stdout}\n"
        'COMP_LINE="list-models iqe-m"; COMP_POINT=${#COMP_LINE}; COMP_TYPE=9\n'
        '_python_argcomplete list-models; echo "${COMPREPLY[@]}"; complete -p train-agent'
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PATH": f"{wrapper.parent}:{os.environ['PATH']}"}
    run = subprocess.run(["bash", "-c", script], cwd=folder, env=environment, capture_output=True, text=True)
    assert run.stdout.splitlines()[0].strip() == "iqe-maxmean", run.stderr
    assert "_python_argcomplete train-agent" in run.stdout


def test_names_known_without_torch_are_those_of_the_registries() -> None:
    list_q_models()
    own = [name for name, entry in MODELS.entries.items() if entry.origin == "qrl" and not entry.legacy]
    assert builtin_names() == sorted(own)
    assert set(builtin_learners()) <= set(list_learners())
    assert builtin_worlds() == ["layout", "maze", "minigrid", "noisy", "teleport", "unseen-doors"]
