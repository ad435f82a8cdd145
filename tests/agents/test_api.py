"""The public functions of `qrl`."""

from pathlib import Path

import numpy as np
import pytest

import qrl
from qrl.agents.runs.settings import TrainSettings
from qrl.common.errors import ConfigError
from tests.agents.worlds import SMALL, corridor, other_notices, ring_data

QUICK = {
    "model.params": SMALL,
    "learner.min_steps": 4,
    "learner.epochs": 0.01,
    "learner.batch_size": 32,
    "compile": "off",
}


def test_data_is_collected_with_the_keys_of_the_command() -> None:
    dataset = qrl.collect("corridor", trajectories=40, max_steps=30)
    assert dataset.content_hash == corridor(40).content_hash
    with pytest.raises(ConfigError, match="collect: unknown key 'trajectoris'"):
        qrl.collect("corridor", trajectoris=3)


def test_from_data_to_actions(tmp_path: Path) -> None:
    dataset = qrl.collect("corridor", trajectories=40, max_steps=30)
    run = qrl.train(dataset, model="iqe-sum", out=tmp_path / "run", settings={**QUICK, "seed": 3})
    assert isinstance(run, qrl.Run)
    assert run.complete.exists()
    assert (run.settings.model.name, run.settings.seed, run.settings.learner.min_steps) == ("iqe-sum", 3, 4)
    assert run.settings.collector.trajectories == 40
    assert run.dataset.content_hash == dataset.content_hash  # the data is saved with the run
    assert (run.path / "dataset.npz").exists()
    evaluation = qrl.evaluate(run, seed=2)
    assert evaluation.success_rate == qrl.evaluate(run.path, seed=2).success_rate
    assert {results.name for results in evaluation.references} == {"oracle", "random", "empirical-graph"}
    assert evaluation.results.seed == 2
    assert other_notices(evaluation.notices) == []
    agent = qrl.load(run.path)
    goal = dataset.observations[7]
    steps = agent.steps_to_goal(dataset.observations[0], goal)
    assert agent.act(dataset.observations[0], goal) == np.argmin(steps)


def test_a_file_of_data_and_nested_settings(tmp_path: Path) -> None:
    corridor().save(tmp_path / "d.npz")
    settings = {
        "model": {"params": SMALL},
        "learner": {"min_steps": 2, "epochs": 0.01, "batch_size": 8},
        "compile": "off",
    }
    run = qrl.train(tmp_path / "d.npz", out=tmp_path / "run", settings=settings)
    assert run.settings.dataset == str(tmp_path / "d.npz")
    assert not (run.path / "dataset.npz").exists()
    assert run.settings.model.name == "mrn-fixed"
    again = qrl.train(tmp_path / "d.npz", out=tmp_path / "warm", settings=settings, init=run.path)
    assert again.complete.exists()
    with pytest.raises(ValueError, match="holds a training run"):
        qrl.train(tmp_path / "d.npz", out=tmp_path / "run", settings=settings)
    assert qrl.train(tmp_path / "d.npz", out=tmp_path / "run", settings=settings, force=True).complete.exists()


def test_a_config_is_updated_by_settings(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("seed: 7\nlearner: {batch_size: 8, lr: 0.5}\n")
    run = qrl.train(
        corridor(), config=str(tmp_path / "c.yaml"), out=tmp_path / "run", settings={**QUICK, "learner.lr": 0.1}
    )
    assert (run.settings.seed, run.settings.learner.lr, run.settings.learner.batch_size) == (7, 0.1, 32)


def test_owning_the_training_loop(tmp_path: Path) -> None:
    from qrl.common.nesting import nest

    values = nest({**QUICK, "run": str(tmp_path / "run"), "log_every": 2})
    run = qrl.Run.start(TrainSettings.from_values(values, "test"), dataset=corridor())
    assert [row["step"] for row in run.train()] == [2, 4]


def test_an_environment_of_ones_own(tmp_path: Path) -> None:
    from tests.agents.goal_envs import Ring

    settings = {key: value for key, value in QUICK.items() if key != "model.params"}
    run = qrl.train(ring_data(), out=tmp_path / "run", settings={**settings, "model.width": 8, "model.latent_size": 8})
    evaluation = qrl.evaluate(run, env=Ring(), episodes=7)
    assert evaluation["tasks"] == 7
    assert evaluation.results.protocol == "paper"
    by_id = qrl.evaluate(run, env="tests.agents.goal_envs:Ring-v0", episodes=7)
    assert by_id.success_rate == evaluation.success_rate


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"learner": "mbould"}, "unknown learner 'mbould' \\(did you mean 'mbold'"),
        ({"model": "iqe-maxmeen"}, "did you mean 'iqe-maxmean'"),
        ({"settings": {"learner.lrr": 1}}, "did you mean 'learner.lr'"),
        ({"config": "quik"}, "did you mean 'quick'"),
    ],
)
def test_mistakes(arguments: dict[str, object], message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        qrl.train(corridor(2), out=tmp_path / "run", **arguments)  # type: ignore[arg-type]
    assert not (tmp_path / "run").exists()
