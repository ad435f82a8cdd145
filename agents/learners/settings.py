"""Settings of the learners. Nothing here imports torch, so that --help answers at once."""

import math
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from qrl.common.settings import Settings
from qrl.common.text import shown


class GoalSettings(Settings):
    """Where goals come from: three probabilities that sum to 1."""

    current: float = Field(
        0.02, ge=0, le=1, description="probability of the transition's own state-action pair as goal"
    )
    future: float = Field(0.49, ge=0, le=1, description="probability of a later pair of the same trajectory")
    random: float = Field(0.49, ge=0, le=1, description="probability of a random pair of the whole dataset")
    offset: Literal["uniform", "geometric"] = Field(
        "uniform", description="offset of a future goal: uniform over the rest of the trajectory, or geometric"
    )
    geometric_discount: float = Field(0.95, gt=0, lt=1, description="a geometric offset is 1 + Geometric(1 - this)")
    balanced: float = Field(
        0,
        ge=0,
        le=1,
        description="fraction of the batch drawn uniformly from the distinct transitions, with random goals drawn "
        "uniformly from the distinct pairs, however often the data repeats them; none where no state repeats",
    )
    connected: bool = Field(
        False,
        description="draw random goals only from states that the transitions of the data connect with the state, in "
        "either direction; else, in data of several separate mazes, most random goals are unreachable",
    )

    @model_validator(mode="after")
    def _sum_to_one(self) -> Self:
        total = self.current + self.future + self.random
        if abs(total - 1) > 1e-6:
            raise ValueError(f"current + future + random must be 1, but sum to {total:g}")
        return self


Name = Annotated[str, Field(description="registered name of the learner; list-learners shows them")]
Discount = Annotated[float, Field(gt=0, lt=1, description="gamma in D = gamma**d")]
BatchSize = Annotated[int, Field(ge=2, le=10**6, description="transitions or pairs of nodes per step")]
Epochs = Annotated[float, Field(gt=0, le=10**6, description="passes over the data, each of size / batch_size steps")]
MinSteps = Annotated[int, Field(ge=1, description="minimum number of training steps, however small the data")]
LearningRate = Annotated[float, Field(gt=0, description="Adam's learning rate, decayed to 0 by a cosine")]
Fourier = Annotated[
    int,
    Field(
        ge=0,
        le=4096,
        description="random frequencies of single features whose sines and cosines are added to the observations",
    ),
]
Triangle = Annotated[
    float, Field(ge=0, description="weight of the triangle regularizer (the paper tries 0.3, 1 and 3)")
]
Triplets = Annotated[int, Field(ge=1, description="triplets per step, if regularized")]
Polyak = Annotated[float, Field(ge=0, lt=1, description="fraction of its weights that the target keeps per step")]
Goals = Annotated[GoalSettings, Field(description="where goals come from")]


COMMANDS = {"trajectories": "train-agent", "graph": "train-graph"}  # by what learners learn from
Learns = Literal["distances", "scores"]  # of state-action pairs and goals, or only which action is better


class LearnerSettings(Settings):
    """What all learners have in common; a learner adds its own keys in a subclass."""

    DATA: ClassVar[Literal["trajectories", "graph"]] = "trajectories"  # what it learns from
    LEARNS: ClassVar[Learns] = "distances"
    CERTAIN: ClassVar[bool] = False  # takes what happened once for certain: made for deterministic worlds
    ONCE: ClassVar[dict[str, Any]] = {}  # what release 0.1 did instead of today's defaults, where it had no key for it

    name: Name = "mbold"
    discount: Discount = 0.95
    batch_size: BatchSize = 1024
    epochs: Epochs = 1
    min_steps: MinSteps = 8000
    lr: LearningRate = 1e-3
    standardize: bool = Field(
        True, description="scale observations to mean 0 and standard deviation 1 over the distinct states"
    )
    fourier: Fourier = 0
    fourier_scale: float = Field(8, gt=0, description="standard deviation of these frequencies")

    @model_validator(mode="after")
    def _representable(self) -> Self:
        """Refuse numbers that overflow in single precision or in 64-bit integers."""
        for key in type(self).model_fields:
            value = getattr(self, key)
            largest = 2**63 - 1 if isinstance(value, int) else 1e38
            if isinstance(value, int | float) and value != 0 and not 1e-38 <= abs(value) <= largest:
                raise ValueError(f"{key}: must be 0 or between 1e-38 and {largest} (got {shown(value)})")
        return self

    def num_steps(self, size: int) -> int:
        """Training steps for a dataset of `size` transitions or pairs."""
        return max(self.min_steps, math.ceil(self.epochs * math.ceil(size / self.batch_size)))

    def learning_rate(self, step: int, num_steps: int) -> float:
        """The cosine schedule; a run that is extended follows the schedule of its new length from then on."""
        return self.lr * 0.5 * (1 + math.cos(math.pi * step / num_steps))


class MboldSettings(LearnerSettings):
    """The defaults are those of docs/training.md; the paper's are in configs/train/paper.yaml."""

    ONCE: ClassVar[dict[str, Any]] = {"fourier": 0, "goals": {"balanced": 0}, "loss": "mse", "bound": "none"}

    name: Name = "mbold"
    min_steps: MinSteps = 5000
    lr: LearningRate = 3e-3
    fourier: Fourier = 64
    triangle: Triangle = 0
    triangle_triplets: Triplets = 341
    polyak: Polyak = 0.9
    conservative: float | None = Field(
        None,
        ge=0,
        description="weight of the conservative term log mean_b exp D(b) - D(a), against actions never tried; by "
        "default 1 with the Huber loss, and 0 with mse, which it would outweigh",
    )
    goals: Goals = GoalSettings(balanced=0.5)
    loss: Literal["mse", "huber"] = Field(
        "huber", description="mse: mean squared error of D, as in the paper; huber: Huber loss of the distance d"
    )
    huber_delta: float = Field(3, gt=0, description="error in steps from which the Huber loss is linear")
    expectile: float = Field(
        0.7,
        gt=0,
        lt=1,
        description="weight in the Huber loss of distances that are too short, against 1 - this of those too long; the "
        "minimum over actions favours the former, and 0.5 leaves them so",
    )
    max_distance: float = Field(
        100, gt=0, description="distance beyond which the Huber loss sees no difference, as for unreachable goals"
    )
    bound: Literal["auto", "none", "trajectory", "graph"] = Field(
        "auto",
        description="bound targets by paths in the data, if it is deterministic: the rest of the same trajectory, or "
        "shortest paths over all transitions; auto: what the data allows",
    )

    @property
    def conservative_weight(self) -> float:
        return self.conservative if self.conservative is not None else float(self.loss == "huber")


class QrlSettings(LearnerSettings):
    CERTAIN = True

    name: Name = "qrl"
    epsilon: float = Field(0.25, ge=0, description="how much longer than 1 an observed transition may be")
    offset: float = Field(60, gt=0, description="distance up to which random pairs are pushed apart; above the longest")
    softness: float = Field(
        10, gt=0, description="range of distances around the offset in which the push fades (1 / beta of the softplus)"
    )
    constraint: Literal["mean", "each"] = Field(
        "mean",
        description="mean: one multiplier for the mean violation, as published; each: one per distinct transition and "
        "action after it",
    )
    multiplier: float = Field(1, gt=0, description="initial Lagrange multiplier")
    multiplier_lr: float = Field(0.01, gt=0, description="rate of the multipliers' ascent")


class MadSettings(LearnerSettings):
    CERTAIN = True

    name: Name = "mad"
    goals: Goals = GoalSettings(current=0, future=1, random=0)
    hindsight_weight: float = Field(0.1, ge=0, description="weight of (d / hindsight steps - 1)^2")
    push_weight: float = Field(1, ge=0, description="weight of the push between random pairs")
    bound_weight: float = Field(1, ge=0, description="weight of ((d - hindsight steps)^+)^2 of near pairs")
    bound_steps: int = Field(6, ge=1, description="hindsight steps of near pairs, at most")
    max_distance: float = Field(100, gt=0, description="distance up to which random pairs are pushed apart")


class FutureSettings(LearnerSettings):
    """Of learners whose goals are later pairs of the same trajectory, by their definition."""

    goals: Goals = GoalSettings(current=0, future=1, random=0)

    @model_validator(mode="after")
    def _goals_of_the_trajectory(self) -> Self:
        if wrong := [key for key in ("random", "balanced") if getattr(self.goals, key) > 0]:
            raise ValueError(f"goals.{wrong[0]}: must be 0: {self.name} learns from goals of the same trajectory alone")
        return self


class ContrastiveSettings(FutureSettings):
    """Of learners that compare all pairs of a batch."""

    batch_size: BatchSize = 256
    # A geometric number of steps from 0 on, so that current is 1 - geometric_discount; from 1 on, the optimum would not
    # be a distance: y may follow other pairs sooner than itself.
    goals: Goals = GoalSettings(current=0.05, future=0.95, random=0, offset="geometric")


class CmdSettings(ContrastiveSettings):
    name: Name = "cmd"


class TmdSettings(ContrastiveSettings):
    name: Name = "tmd"
    backup_weight: float = Field(0.05, ge=0, description="weight of the backup (zeta)")
    linear_from: float = Field(3, gt=0, description="difference from which the backup's loss is linear (t)")


class IqlSettings(LearnerSettings):
    name: Name = "iql"
    polyak: Polyak = 0.9
    expectile: float = Field(0.9, gt=0, lt=1, description="expectile of the values of the actions seen (tau)")
    goals: Goals = GoalSettings(current=0.2, future=0.5, random=0.3, offset="geometric")


class GcbcSettings(FutureSettings):
    LEARNS = "scores"

    name: Name = "gcbc"


class RegressionSettings(LearnerSettings):
    """The paper's, for its large graph."""

    DATA = "graph"

    name: Name = "regression"
    discount: Discount = 0.9
    epochs: Epochs = 80
    min_steps: MinSteps = 1
    lr: LearningRate = 1e-4
    triangle: Triangle = 0
    triangle_triplets: Triplets = 342
