"""Asymmetric dot products f(s)_a . g(goal)_a' of two separate encoders, turned into a distance by a readout."""

import torch
from torch import Tensor

from qrl.encoders import MLP
from qrl.q_models.base import pair_up
from qrl.q_models.latent import BatchNorm, HiddenSizes, LatentSize
from qrl.q_models.readout import ReadoutName, ReadoutQModel, register_readout_aliases
from qrl.registry import register_q_model
from qrl.spec import QModelSpec


@register_q_model("dot", family="dot product")
class DotProductQModel(ReadoutQModel):
    """The output for (s, a) and (g, a') is f(s)_a . g(goal)_a', with separate encoders of states and goals."""

    def __init__(
        self,
        spec: QModelSpec,
        readout: ReadoutName = "disc-sigmoid",
        latent_size: LatentSize = 256,
        hidden_sizes: HiddenSizes = (2048, 2048, 2048),
        batch_norm: BatchNorm = True,
    ) -> None:
        super().__init__(spec, readout)
        outputs = spec.num_actions * latent_size
        self.source_encoder = MLP(spec.observation_dim, hidden_sizes, outputs, batch_norm)
        self.goal_encoder = MLP(spec.observation_dim, hidden_sizes, outputs, batch_norm)

    def encode(self, observations: Tensor, counts: Tensor | None = None) -> Tensor:
        """(rows, 2, actions, latent_size): the latents as sources and as goals."""
        latents = [encoder(observations, counts) for encoder in (self.source_encoder, self.goal_encoder)]
        stacked: Tensor = torch.stack(latents, 1).unflatten(-1, (self.spec.num_actions, -1))
        return stacked

    def output(self, state: Tensor, action: Tensor | None, goal: Tensor, goal_action: Tensor | None) -> Tensor:
        source, target = pair_up(state[..., 0, :, :], action, goal[..., 1, :, :], goal_action)
        return (source * target).sum(-1)


register_readout_aliases("dot")
