"""Every command's help is fast and lists every key; every command tells its version."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import qrl
from qrl.agents.evaluation.results import keys_help
from qrl.agents.runs.problems import PROBLEMS
from qrl.agents.runs.settings import GraphTrainSettings, TrainSettings
from qrl.envs.collector import CollectorSettings
from qrl.envs.graphs.collector import GraphSettings

SCRIPTS = sorted(path.stem for path in (Path(__file__).parents[2] / "scripts").glob("[!_]*.py"))


def first_words(text: str) -> list[str]:
    return [line.split()[0] for line in text.splitlines()]


def keys_of(script: str) -> list[str]:
    if script == "sweep_agents":
        from qrl.agents.studies.study import StudySettings

        return first_words(StudySettings.help())
    keys = {
        "collect_dataset": list(CollectorSettings.model_fields),
        "collect_graph": first_words(GraphSettings.help()),
        "evaluate_planning": first_words(keys_help()),
        "train_agent": [*first_words(TrainSettings.help()), "success_rate", "absolute_error"],
        "train_graph": [*first_words(GraphTrainSettings.help()), *(m.key for m in PROBLEMS["train-graph"].metrics)],
    }
    return keys.get(script, [])


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
    for key in keys_of(script):
        assert f"\n  {key} " in run.stdout


def test_nested_keys_are_listed() -> None:
    assert {"dataset", "collector.epsilon", "model.name", "learner.goals.future"} <= set(keys_of("train_agent"))


@pytest.mark.parametrize("script", SCRIPTS)
def test_version(script: str, capsys: pytest.CaptureFixture[str]) -> None:
    main = importlib.import_module(f"qrl.scripts.{script}").main
    with pytest.raises(SystemExit) as exit_:
        main(["--version"])
    assert exit_.value.code == 0
    assert capsys.readouterr().out == f"{script.replace('_', '-')} (quasimetric {qrl.__version__})\n"


def test_the_metric_of_a_plugin_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from qrl.agents.evaluation.metrics import METRICS
    from qrl.scripts.evaluate_planning import main

    (tmp_path / "toy_metrics.py").write_text(
        "from qrl import register_metric\n"
        "@register_metric('toy.losses', title='toy losses', help='how often the toy loses')\n"
        "def losses(measurements):\n    return 1.0\n"
    )
    monkeypatch.chdir(tmp_path)
    before = list(METRICS)
    try:
        with pytest.raises(SystemExit):
            main(["--plugin", "toy_metrics", "--help"])
    finally:
        METRICS[:] = before
    lines = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
    assert ["toy.losses", "how often the toy loses"] in lines
