"""What a user gets who installs the wheel, also beside folders called envs/ and agents/; and who may import whom."""

import ast
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterator
from configparser import ConfigParser
from pathlib import Path

import pytest

import qrl

ROOT = Path(__file__).parents[1]
PARTS = ("envs", "agents", "configs", "scripts")  # linked into qrl/


def _commands() -> list[str]:
    config = ConfigParser()
    config.read(ROOT / "setup.cfg")
    lines = config["options.entry_points"]["console_scripts"].split("\n")
    return [line.split(" = ")[0] for line in lines if line]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = tmp_path_factory.mktemp("source")
    for name in ("qrl", *PARTS):
        shutil.copytree(ROOT / name, source / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    build = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--quiet", "-w", "out", "."]
    run = subprocess.run(build, cwd=source, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    (built,) = (source / "out").iterdir()
    return built


def test_the_wheel_contains_qrl_and_nothing_else(wheel: Path) -> None:
    assert wheel.name.startswith(f"quasimetric-{qrl.__version__}-")
    files = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info" not in name}
    expected = {
        str(path.relative_to(ROOT))
        for folder in ("", *PARTS)  # rglob does not follow links by itself
        for path in (ROOT / "qrl" / folder).rglob("*")
        if path.suffix in {".py", ".txt", ".yaml", ".typed", ".html", ".css", ".js"}
    }
    assert files == expected


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The commands of a clean environment that has the wheel, and our dependencies on its path."""
    folder = tmp_path_factory.mktemp("clean")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    # The folder named in a .pth file is searched for packages; its own .pth files (our editable install) are not read.
    (site / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"])
    options = ["--no-deps", "--no-index", "--quiet", "--force-reinstall"]
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "install", *options, str(wheel)]
    run = subprocess.run(pip, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return folder / "bin"


HEAD = """
import torch
import qrl
from qrl.heads import Head

@qrl.register_head("one-sided")
class OneSided(Head):
    guaranteed_quasimetric = True

    def components(self, u: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return (v - u).relu().sum(-1)
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's project whose own envs/, agents/, scripts/ and configs/ must not be mistaken for ours."""
    folder = tmp_path_factory.mktemp("project")
    for name in PARTS:
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text(f"raise RuntimeError('the user\\'s own {name} was imported')\n")
    (folder / "my_head.py").write_text(HEAD)
    return folder


def _run(project: Path, *command: str | Path) -> str:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    run = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, f"{command}\n{run.stderr}"
    return run.stdout


@pytest.mark.parametrize("name", _commands())
def test_every_command_runs_outside_the_source_tree(installed: Path, project: Path, name: str) -> None:
    assert _run(project, installed / name, "--version") == f"{name} (quasimetric {qrl.__version__})\n"
    assert _run(project, installed / name, "--help").startswith(f"usage: {name} ")


def test_a_whole_session_beside_folders_of_our_names(installed: Path, project: Path) -> None:
    where = _run(project, installed / "python", "-c", "import qrl.agents.api, qrl.envs; print(qrl.envs.__file__)")
    assert Path(where.strip()).is_relative_to(installed.parent)
    small = ["compile=off", "model.width=8", "model.latent_size=8", "learner.epochs=0.01", "learner.min_steps=3"]
    _run(project, installed / "collect-dataset", "data.npz", "layout=corridor", "trajectories=5")
    _run(project, installed / "inspect-dataset", "data.npz")
    plugin = ["--plugin", "my_head"]
    _run(project, installed / "train-agent", *plugin, "dataset=data.npz", "run=mine", "model.name=one-sided", *small)
    assert "success rate" in _run(project, installed / "evaluate-planning", "mine", *plugin)
    _run(project, installed / "explore-agents", "explorer.html", "mine", *plugin)
    _run(project, installed / "compare-agents", "report.html", "mine", "--explorer", "explorer.html", *plugin)
    _run(project, installed / "collect-graph", "graph.npz", "kind=random-sparse", "nodes=20", "feature_size=4")
    _run(project, installed / "train-graph", "dataset=graph.npz", "run=graph", *small)
    program = (
        "import qrl, gymnasium\n"
        "run = qrl.train(qrl.collect('corridor', trajectories=5), out='second', settings={'compile': 'off',\n"
        "    'model.width': 8, 'model.latent_size': 8, 'learner.epochs': 0.01, 'learner.min_steps': 3})\n"
        "print(qrl.evaluate(run).success_rate, gymnasium.make('qrl.envs:qrl/OneWayDoors-v0').spec.id)"
    )
    assert "qrl/OneWayDoors-v0" in _run(project, installed / "python", "-c", program)


@pytest.mark.parametrize("folder", ["qrl", "envs", "agents"])
def test_imports_go_one_way(folder: str) -> None:
    """Agents -> envs, models; envs -> qrl.common; models import neither."""
    for path in (ROOT / folder).rglob("*.py"):
        for name in _imports(path):
            assert name.split(".")[0] not in {*PARTS, "tests", "benchmarks"}, f"{path}: {name}"
            if folder == "qrl" and path.relative_to(ROOT / "qrl").name not in (
                "__init__.py",
                "__main__.py",
                "testing.py",
            ):
                assert not name.startswith(("qrl.envs", "qrl.agents", "qrl.scripts")), f"{path}: {name}"
            if folder == "envs":
                assert name.split(".")[0] != "torch", path
                assert name == "qrl" or not name.startswith("qrl.") or name.startswith(("qrl.common", "qrl.envs")), path


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        ("qrl", ("torch", "numpy", "pydantic")),
        ("qrl.envs", ("torch", "numpy", "gymnasium")),
        ("qrl.envs.dataset", ("torch", "gymnasium", "minigrid", "matplotlib", "PIL")),
        ("qrl.agents.runs.trainer", ("gymnasium", "PIL", "matplotlib", "scipy.stats", "torch._dynamo")),
        ("qrl.agents.runs.trainer", ("qrl.agents.planning.rollouts", "qrl.agents.evaluation.evaluator")),
        ("qrl.agents.api", ("qrl.agents.learners.base", "gymnasium", "PIL", "matplotlib")),
    ],
)
def test_what_an_import_must_not_import(module: str, unwanted: tuple[str, ...]) -> None:
    program = f"import sys, {module}; print([name for name in {unwanted} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


@pytest.mark.parametrize("script", sorted(path.stem for path in (ROOT / "scripts").glob("[!_]*.py")))
def test_the_modules_of_commands_are_light(script: str) -> None:
    """An interrupt in the first moments must find `command` in charge."""
    program = f"import sys, qrl.scripts.{script}; print([m for m in ('numpy', 'pydantic', 'yaml') if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"
