"""Every command's help answers at once and lists every key."""

import subprocess
import sys
from pathlib import Path

import pytest

from qrl.agents.runs.settings import GraphTrainSettings, TrainSettings
from qrl.agents.studies.study import StudySettings
from qrl.envs.collector import CollectorSettings
from qrl.envs.graphs.collector import GraphSettings

SCRIPTS = sorted(path.stem for path in (Path(__file__).parents[2] / "scripts").glob("[!_]*.py"))
KEYS = {
    "collect_dataset": list(CollectorSettings.model_fields),
    "collect_graph": [line.split()[0] for line in GraphSettings.help().splitlines()],
    "train_graph": [line.split()[0] for line in GraphTrainSettings.help().splitlines()],
    "sweep_agents": [line.split()[0] for line in StudySettings.help().splitlines()],
    "train_agent": [line.split()[0] for line in TrainSettings.help().splitlines()],
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_help_is_light_and_complete(script: str) -> None:
    program = (
        f"import sys; from qrl.scripts.{script} import main\n"
        "try: main(['--help'])\n"
        "finally: print(*sys.modules, file=sys.stderr)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not {"torch", "minigrid", "matplotlib", "minari"} & set(run.stderr.split())
    assert run.stdout.startswith(f"usage: {script.replace('_', '-')} ")
    for key in KEYS.get(script, []):
        assert f"\n  {key} " in run.stdout


def test_nested_keys_are_listed() -> None:
    assert {"dataset", "collector.epsilon", "model.name", "learner.goals.future"} <= set(KEYS["train_agent"])
