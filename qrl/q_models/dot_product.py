"""Asymmetric dot products f(s)_a . g(goal)_a' of two different encoders, read as a distance."""

import torch
from torch import Tensor

from qrl.encoders import MLP
from qrl.q_models.base import pair_up
from qrl.q_models.latent import BatchNorm, HiddenSizes, LatentSize
from qrl.q_models.readout import ReadoutName, ReadoutQModel
from qrl.readouts import READOUTS
from qrl.registry import register_q_model
from qrl.spec import QModelSpec


class DotProductQModel(ReadoutQModel):
    def __init__(
        self,
        spec: QModelSpec,
        readout: ReadoutName,
        latent_size: LatentSize = 256,
        hidden_sizes: HiddenSizes = (2048, 2048, 2048),
        batch_norm: BatchNorm = True,
    ) -> None:
        super().__init__(spec, readout)
        outputs = spec.num_actions * latent_size
        self.source_encoder = MLP(spec.observation_dim, hidden_sizes, outputs, batch_norm)
        self.goal_encoder = MLP(spec.observation_dim, hidden_sizes, outputs, batch_norm)

    def encode(self, observations: Tensor, counts: Tensor | None = None) -> Tensor:
        """(rows, 2, actions, latent_size): the latents as a source and as a goal."""
        both = [encoder(observations, counts) for encoder in (self.source_encoder, self.goal_encoder)]
        return torch.stack(both, 1).unflatten(-1, (self.spec.num_actions, -1))

    def output(self, state: Tensor, action: Tensor | None, goal: Tensor, goal_action: Tensor | None) -> Tensor:
        source, target = pair_up(state[..., 0, :, :], action, goal[..., 1, :, :], goal_action)
        return (source * target).sum(-1)


for _name in READOUTS:
    register_q_model(f"dot-{_name}", family="dot product", readout=_name)(DotProductQModel)
