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
        from qrl.agents.studies.settings import StudySettings

        return first_words(StudySettings.help())
    keys = {
        "collect_dataset": list(CollectorSettings.model_fields),
        "collect_graph": first_words(GraphSettings.help()),
        "evaluate_planning": first_words(keys_help()),
        "train_agent": [*first_words(TrainSettings.help()), "success_rate", "absolute_error"],
        "train_graph": [*first_words(GraphTrainSettings.help()), *(m.key for m in PROBLEMS["train-graph"].metrics)],
    }
    return keys.get(script, [])


def light_help(script: str, *arguments: str) -> str:
    """The output of --help, which imports nothing heavy."""
    program = (
        f"import sys; from qrl.scripts.{script} import main\n"
        f"try: main({['--help', *arguments]!r})\n"
        "finally: print(*sys.modules, file=sys.stderr)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not {"torch", "minigrid", "matplotlib", "minari"} & set(run.stderr.split())
    return run.stdout


@pytest.mark.parametrize("script", SCRIPTS)
def test_help_is_light_and_complete(script: str) -> None:
    text = light_help(script)
    assert text.startswith(f"usage: {script.replace('_', '-')} ")
    for key in keys_of(script):
        assert f"\n  {key} " in text


def indented(text: str) -> list[str]:
    """The keys, among other things that --help explains."""
    return first_words("\n".join(line for line in text.splitlines() if line.startswith("  ")))


def test_help_lists_the_keys_of_the_chosen_learner(tmp_path: Path) -> None:
    config = tmp_path / "c.yaml"
    config.write_text("learner: {name: qrl}\n")
    for choice in (["learner.name=qrl"], ["--config", str(config)], [f"--config={config}", "--force", "seed=3"]):
        keys = indented(light_help("train_agent", *choice))
        assert {"learner.name", "learner.lr", "learner.epsilon", "model.name", "success_rate"} <= set(keys)
        assert "learner.polyak" not in keys
        assert keys.count("learner.name") == 1
    overridden = indented(light_help("train_agent", "--config", str(config), "learner.name=iql"))
    assert "learner.expectile" in overridden
    assert "learner.epsilon" not in overridden


def test_help_answers_whatever_else_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    from qrl.scripts.train_agent import main

    for mistake in (["learner.name=nothing"], ["--config", "nowhere.yaml"], ["learner=3"], ["--config"]):
        with pytest.raises(SystemExit) as exit_:
            main(["--help", *mistake])
        assert exit_.value.code == 0
        assert "\n  learner.polyak " in capsys.readouterr().out


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
