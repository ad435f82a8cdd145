"""What contrastive learners share: the symmetric InfoNCE over all pairs of a batch."""

import math
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F

from qrl.agents.errors import LearnerError
from qrl.agents.learners.base import Learner
from qrl.agents.learners.goal_sampler import Batch, GoalSampler
from qrl.agents.learners.settings import ContrastiveSettings
from qrl.encoders import MLP
from qrl.envs.dataset import Dataset
from qrl.q_models.base import QModel

_POTENTIAL_WIDTH = 256
_PROBE = 8  # pairs x pairs whose memory is measured
_MEMINFO = Path("/proc/meminfo")


def info_nce(p: Tensor) -> Tensor:
    """The loss of (batch, batch) energies p whose diagonal holds the true pairs."""
    pick = torch.arange(len(p), device=p.device)
    return (F.cross_entropy(-p, pick) + F.cross_entropy(-p.T, pick)) / 2


class ContrastiveLearner(Learner):
    """Learns d with a potential c of goals; one energy p per pair of a batch."""

    GOAL_KINDS = ("state-action",)

    reports: tuple[str, ...] = ("loss_contrast", "accuracy", "future_distance", "random_distance")
    settings: ContrastiveSettings
    sampler: GoalSampler

    def __init__(
        self, model: QModel, observations: Tensor, dataset: Dataset, settings: ContrastiveSettings, seed: int
    ) -> None:
        super().__init__(model, observations, dataset, settings, seed)
        self.scale = -math.log(settings.discount)  # nats per step
        check_memory(model, settings.batch_size)
        spec = model.spec
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed % 2**63)
            potential = MLP(spec.observation_dim, (_POTENTIAL_WIDTH,), spec.num_actions, batch_norm=False)
        self.potential = potential.to(observations)
        self.optimizer.add_param_group({"params": list(self.potential.parameters())})

    def energies(self, distances: Tensor, batch: Batch) -> Tensor:
        """p_ij of the (batch, batch) distances of x_i to y_j."""
        potentials: Tensor = self.potential(self.observations.index_select(0, batch.goals))
        return self.scale * distances - potentials.gather(1, batch.goal_actions[:, None]).T

    def all_distances(self, rows: Tensor, s: Tensor, g: Tensor, batch: Batch) -> Tensor:
        """(batch, batch): d(x_i, y_j)."""
        states, goals = rows.index_select(0, s)[:, None], rows.index_select(0, g)[None]
        return self.model.distance(states, batch.actions[:, None], goals, batch.goal_actions[None])

    def contrast(self, distances: Tensor, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """The InfoNCE, and the `reports` that all contrastive learners have."""
        energies = self.energies(distances, batch)
        value = info_nce(energies)
        detached = distances.detach()
        best = energies.detach().argmin(1) == torch.arange(len(detached), device=detached.device)
        values = (value, best.to(detached.dtype), detached.diagonal(), detached)
        return value, dict(zip(ContrastiveLearner.reports, values, strict=True))


def check_memory(model: QModel, batch_size: int) -> None:
    """Refuse a batch whose square takes more memory than there is."""
    free = _free_memory()
    if free is None:
        return
    needed = _bytes_per_pair(model) * batch_size**2
    if needed > free:
        fits = math.isqrt(int(batch_size**2 * free / needed))
        raise LearnerError(
            f"learner.batch_size: the distances of {batch_size:,} x {batch_size:,} pairs of this model take about "
            f"{needed / 2**30:.1f} GiB, and {free / 2**30:.1f} GiB are free; at most {fits:,} fit"
        )


def _bytes_per_pair(model: QModel) -> float:
    """Memory that the gradient of a pair's distance keeps, measured on a few."""
    saved = 0

    def count(tensor: Tensor) -> Tensor:
        nonlocal saved
        saved += tensor.nbytes
        return tensor

    parameter = next(model.parameters())
    training = model.training
    model.eval()
    rows = model.encode(torch.zeros(_PROBE, model.spec.observation_dim).to(parameter)).detach().requires_grad_()
    actions = torch.zeros(_PROBE, dtype=torch.long, device=parameter.device)
    with torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
        model.distance(rows[:, None], actions[:, None], rows[None], actions[None])
    model.train(training)
    return saved / _PROBE**2


def _free_memory() -> int | None:
    """Bytes that can be allocated, including those of the file cache; None where the system does not tell."""
    try:
        lines = _MEMINFO.read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), None)
