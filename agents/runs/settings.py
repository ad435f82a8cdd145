"""All settings of training runs. Nothing here imports torch, so that --help answers at once."""

from abc import abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field

from qrl.agents.learners.settings import MboldSettings, RegressionSettings
from qrl.common.settings import Settings
from qrl.envs.collector import CollectorSettings
from qrl.envs.graphs.collector import GraphSettings


class ModelSettings(Settings):
    name: str = Field("iqe-maxmean", description="registered name of the Q-model; list-models shows them")
    width: int = Field(
        1024, ge=1, le=2**16, description="of the widest hidden layers of qrl's models, if no hidden_sizes are given"
    )
    latent_size: int | None = Field(
        None,
        ge=1,
        le=2**16,
        description="of qrl's models: latent of a pair, or last hidden layer of an unconstrained network",
    )
    params: dict[str, Any] = Field({}, description="its parameters, as model.params.KEY=VALUE; see list-models NAME")


class RunSettings(Settings):
    """What all training runs have in common."""

    COMMAND: ClassVar[str]
    DATA: ClassVar[str]  # the group of settings that data is made from, which no other command has
    EVALUATED: ClassVar[dict[str, str]]  # what is measured against the truth, and what it means

    dataset: str | None = Field(None, description="data file; without one, data is made as the other keys say")
    model: ModelSettings = Field(ModelSettings(), description="the Q-model")
    run: str | None = Field(None, description="folder of the run; by default runs/DATA__MODEL__seedSEED")
    seed: int = Field(0, ge=0, lt=2**63, description="seed of start values, batches and evaluation")
    device: str = Field("cpu", description="torch device")
    threads: int | None = Field(None, ge=1, description="CPU threads; by default what torch finds")
    compile: Literal["auto", "on", "off"] = Field(
        "auto", description="compiled kernels, for runs of a thousand steps or more; auto: where a C++ compiler is"
    )
    log_every: int = Field(50, ge=1, description="steps between rows of metrics")
    evaluate_every: int = Field(1000, ge=1, description="steps between evaluations against the truth")
    checkpoint_every: int = Field(500, ge=1, description="steps between checkpoints")

    @property
    @abstractmethod
    def data_name(self) -> str:
        """What the data is called in the name of the run's folder, if it has no file."""

    @property
    def kept(self) -> dict[str, Any]:
        """What must not change during a run; its folder may be moved, and the data is known by its hash."""
        return self.model_dump(mode="json", exclude={"run", "dataset"})


class TrainSettings(RunSettings):
    CONFIGS = "train"
    COMMAND = "train-agent"
    DATA = "collector"
    EVALUATED: ClassVar[dict[str, str]] = {
        "success_rate": "share of all tasks that greedy planning solves",
        "signed_error": "mean of estimate - truth over all pairs of states with a way",
        "absolute_error": "mean of |estimate - truth| over the same",
    }

    collector: CollectorSettings = Field(CollectorSettings(), description="how data is collected")
    learner: MboldSettings = Field(MboldSettings(), description="how it learns")

    @property
    def data_name(self) -> str:
        return Path(self.collector.layout).stem


class GraphTrainSettings(RunSettings):
    CONFIGS = "graphs"
    COMMAND = "train-graph"
    DATA = "graph"
    EVALUATED: ClassVar[dict[str, str]] = {
        "mse": "mean squared error of the discounted distance",
        "l1_error": "mean of |estimate - truth| over pairs with a way",
        "l1_error_clipped": "the same with estimates cut to what a float can tell of the discounted distance",
        "no_way_estimate": "mean estimate of pairs without a way, which should be large",
        "no_way_estimate_clipped": "the same with estimates cut",
        "spearman": "rank correlation of estimate and truth over pairs with a way",
    }

    graph: GraphSettings = Field(GraphSettings(), description="the graph and its pairs, as for collect-graph")
    learner: RegressionSettings = Field(RegressionSettings(), description="how it learns")

    @property
    def data_name(self) -> str:
        return self.graph.kind if self.graph.file is None else Path(self.graph.file).name.split(".")[0]


def differences(saved: Any, wanted: Any, given: Any, prefix: str = "") -> list[str]:
    """What `wanted` changes of the `saved` values, among the keys of `given`: a line for each key."""
    if not isinstance(given, dict) or not isinstance(saved, dict):
        return [] if saved == wanted else [f"{prefix} was {saved!r}, now {wanted!r}"]
    found = []
    for key in given:
        below = f"{prefix}.{key}" if prefix else key
        found += differences(saved.get(key), wanted.get(key), given[key], below)
    return found
