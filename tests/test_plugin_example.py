"""The example plugin, installed into a temporary folder and used as a user would."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[1] / "examples" / "plugin"
COMMANDS = Path(sys.executable).parent


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plugin")
    shutil.copytree(EXAMPLE, folder / "source", ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info"))
    options = ["--no-deps", "--no-build-isolation", "--quiet", "--target", str(folder / "site")]
    run_in(folder, sys.executable, "-m", "pip", "install", *options, str(folder / "source"))
    return folder


def run_in(folder: Path, *command: str | Path) -> subprocess.CompletedProcess[str]:
    paths = [str(folder / "site"), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return run


def test_it_is_listed_with_its_origin(installed: Path) -> None:
    out = run_in(installed, COMMANDS / "list-models").stdout
    (line,) = (line for line in out.splitlines() if line.startswith("directed-l1"))
    assert "guaranteed" in line
    assert line.endswith("qrl-example-plugin 0.1.0 (qrl_directed_l1)")
    assert "up_i (v_i - u_i)^+" in run_in(installed, COMMANDS / "list-models", "directed-l1").stdout


def test_its_learner_is_listed_with_its_origin(installed: Path) -> None:
    run = run_in(installed, COMMANDS / "list-learners")
    (line,) = (line for line in run.stdout.splitlines() if line.startswith("hindsight-quantile"))
    cells = [cell.strip() for cell in line.split("  ") if cell.strip()]
    origin = "qrl-example-plugin 0.1.0 (qrl_hindsight_quantile)"
    title = "Hindsight quantile regression"
    assert cells == ["hindsight-quantile", title, "state-action goals", "distances", "train-agent", origin]
    assert run.stderr == ""
    described = run_in(installed, COMMANDS / "list-learners", "hindsight-quantile").stdout
    assert "loss = E max(tau u, (tau - 1) u)" in described
    assert "\n  learner.quantile " in described


def test_its_world_is_listed_collected_and_evaluated(installed: Path) -> None:
    def script(name: str, *arguments: str) -> str:
        program = f"import sys; from qrl.scripts.{name} import main; sys.exit(main({list(arguments)!r}))"
        return run_in(installed, sys.executable, "-c", program).stdout

    (line,) = (line for line in script("list_worlds").splitlines() if line.startswith("spiral"))
    assert line.endswith("qrl-example-plugin 0.1.0 (qrl_spiral)")
    assert "\n  world.circles " in script("list_worlds", "spiral")
    script("collect_dataset", "s.npz", "world=spiral", "world.places=5", "trajectories=50")
    arguments = ["--reference", "oracle", "--dataset", "s.npz", "--json", "s.json", "--pictures", "pictures"]
    script("evaluate_planning", *arguments)
    assert json.loads((installed / "s.json").read_text())["success_rate"] == 1
    assert (installed / "pictures" / "distance-map.png").exists()


def test_it_is_built_by_name(installed: Path) -> None:
    program = (
        "from qrl import QModelSpec, make_q_model, list_q_models\n"
        "model = make_q_model('directed-l1', QModelSpec(3, 2, 0.9), hidden_sizes=(4,), reduction='maxmean')\n"
        "print(type(model.head).__name__, 'directed-l1' in list_q_models())"
    )
    assert run_in(installed, sys.executable, "-c", program).stdout == "DirectedL1 True\n"


def test_both_train_from_the_command_and_can_be_resumed(installed: Path) -> None:
    small = ["collector.layout=corridor", "collector.trajectories=9", "learner.min_steps=3", "learner.epochs=0.01"]
    chosen = ["model.name=directed-l1", "learner.name=hindsight-quantile", "learner.quantile=0.3", "compile=off"]
    out = run_in(installed, COMMANDS / "train-agent", "run=r", *chosen, *small).stdout
    assert "training directed-l1 by hindsight-quantile in r, steps 0 to 3" in out
    assert "complete: r" in out
    facts = json.loads((installed / "r" / "run.json").read_text())
    assert facts["learner_origin"] == "qrl-example-plugin 0.1.0 (qrl_hindsight_quantile)"
    header = (installed / "r" / "metrics.csv").read_text().split(",")
    assert header[:3] == ["step", "loss", "overestimated"]
    longer = ["learner.quantile=0.3", "learner.min_steps=4"]
    assert "steps 3 to 4" in run_in(installed, COMMANDS / "train-agent", "--resume", "r", *longer).stdout


def test_its_own_tests_pass(installed: Path) -> None:
    out = run_in(installed, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "source").stdout
    assert "13 passed" in out


def test_it_works_as_a_module_without_installation(installed: Path, tmp_path: Path) -> None:
    shutil.copy(EXAMPLE / "qrl_directed_l1.py", tmp_path)  # the working directory is enough
    out = run_in(tmp_path, COMMANDS / "list-models", "--plugin", "qrl_directed_l1").stdout
    (line,) = (line for line in out.splitlines() if line.startswith("directed-l1"))
    assert line.endswith("  qrl_directed_l1")


def test_a_plugin_that_fails_to_import_is_reported_and_the_rest_works(tmp_path: Path) -> None:
    info = tmp_path / "site" / "torn-1.2.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: torn\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text("[qrl.q_models]\ntorn = torn_module\n")
    (tmp_path / "site" / "torn_module.py").write_text("import a_package_that_is_not_there\n")
    run = run_in(tmp_path, COMMANDS / "list-models")
    assert "iqe-maxmean" in run.stdout
    assert run.stderr == (
        "warning: the plugin torn 1.2 (torn_module) could not be loaded: "
        "ModuleNotFoundError: No module named 'a_package_that_is_not_there'\n"
    )
