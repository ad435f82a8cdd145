"""The public functions of `qrl`: each a thin layer over what the commands use."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from qrl.agents.evaluation.results import Evaluation, ProtocolName
from qrl.agents.planning.agent import Agent
from qrl.agents.runs.run import Run
from qrl.agents.runs.settings import TrainSettings
from qrl.common.config_files import merge, read_config
from qrl.common.nesting import nest
from qrl.envs.collector import CollectorSettings
from qrl.envs.collector import collect as collect_trajectories
from qrl.envs.dataset import Dataset


def collect(layout: str | None = None, **settings: Any) -> Dataset:
    """Collect trajectories in a layout with an epsilon-greedy policy; `settings` are the keys of collect-dataset.

    A registered world is named instead: `qrl.collect(world="ring")`, or {"name": "ring", "states": 9} with its keys.
    """
    values = settings if layout is None else {"layout": layout, **settings}
    return collect_trajectories(CollectorSettings.from_values(values, "collect"))


def train(
    dataset: Dataset | str | Path | None = None,
    *,
    model: str | None = None,
    learner: str | None = None,
    out: str | Path | None = None,
    config: str | None = None,
    settings: Mapping[str, Any] | None = None,
    force: bool = False,
    init: str | Path | None = None,
) -> Run:
    """Train a run to its end, as train-agent does, and return it.

    dataset: a dataset or its file; without one, data is collected. model: registered name of the Q-model.
    learner: registered name of the learner. out: folder of the run. config: a YAML file or the name of a built-in one.
    settings: more keys of train-agent, nested or dotted, such as {"learner.lr": 3e-4, "seed": 1}.
    force: delete the run that is in the folder. init: a run to start from.

    To own the training loop, iterate over `qrl.Run.start(qrl.TrainSettings(...)).train()`.
    """
    values = {} if config is None else read_config(config, TrainSettings.CONFIGS)
    values = merge(values, nest(settings or {}))
    in_memory = dataset if isinstance(dataset, Dataset) else None
    for key, value in (
        ("dataset", None if in_memory else dataset),
        ("run", out),
        ("model.name", model),
        ("learner.name", learner),
    ):
        if value is not None:
            values = merge(values, nest({key: str(value)}))
    run = Run.start(TrainSettings.from_values(values, config or "train"), dataset=in_memory, force=force, init=init)
    for _ in run.train():
        pass
    return run


def evaluate(
    run: Run | str | Path,
    *,
    checkpoint: str | Path | None = None,
    dataset: Dataset | str | Path | None = None,
    world: Mapping[str, Any] | None = None,
    protocol: ProtocolName | None = None,
    episodes: int | None = None,
    seed: int = 0,
    env: Any = None,
) -> Evaluation:
    """Score a run of train-agent beside the references, as evaluate-planning does.

    checkpoint: one that the run kept, instead of its last. dataset: data to evaluate on, instead of the run's own.
    world: other parameters of the world to evaluate in, such as {"split": "test"}.
    env: a gymnasium environment to plan in, or its ID. The other arguments are those of `Evaluator`.
    """
    from qrl.agents.evaluation.trained_agent import TrainedAgent

    if isinstance(env, str):
        from qrl.agents.planning.rollouts import open_env

        env = open_env(env)
    overrides = [f"{key}={value}" for key, value in (world or {}).items()]
    trained = TrainedAgent.open(run, checkpoint, dataset, seed, overrides)
    return trained.evaluate(trained.evaluator(protocol, episodes, seed, env))


def load(run: str | Path, checkpoint: str | Path | None = None, seed: int = 0) -> Agent:
    """The agent of a training run, from its last checkpoint or another one; finished or not."""
    return Run.open(run).load_agent(checkpoint, seed)[0]
