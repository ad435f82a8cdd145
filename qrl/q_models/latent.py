"""Encoder and head: one latent per state-action pair, and the distance of a head between them."""

from typing import Annotated

from pydantic import Field
from torch import Tensor

from qrl.encoders import MLP
from qrl.heads.base import Head
from qrl.q_models.base import QModel, pair_up, take
from qrl.spec import MAX_LAYERS, MAX_SIZE, QModelSpec

LatentSize = Annotated[int, Field(ge=1, le=MAX_SIZE, description="size of the latent of one state-action pair")]
_Width = Annotated[int, Field(ge=1, le=MAX_SIZE)]
HiddenSizes = Annotated[tuple[_Width, ...], Field(max_length=MAX_LAYERS, description="widths of the hidden layers")]
BatchNorm = Annotated[bool, Field(description="batch normalization after each activation")]


class LatentQModel(QModel):
    """d((s, a), (g, a')) = head(f(s)_a, f(g)_a'), where the encoder f gives one latent per action of a state."""

    def __init__(
        self,
        spec: QModelSpec,
        head: Head,
        hidden_sizes: HiddenSizes = (2048, 2048, 2048),
        batch_norm: BatchNorm = True,
    ) -> None:
        super().__init__(spec)
        self.head = head
        self.encoder = MLP(spec.observation_dim, hidden_sizes, spec.num_actions * head.input_size, batch_norm)
        self.guaranteed_quasimetric = head.guaranteed_quasimetric
        self._in_parts = type(head).forward is Head.forward  # else it has a `forward` of its own

    def encode(self, observations: Tensor, counts: Tensor | None = None) -> Tensor:
        """(rows, actions, size of an embedded latent)"""
        latents: Tensor = self.encoder(observations, counts).unflatten(-1, (self.spec.num_actions, -1))
        return self.head.embed(latents) if self._in_parts else latents

    def distance_at(
        self, rows: Tensor, states: Tensor, actions: Tensor | None, goals: Tensor, goal_actions: Tensor
    ) -> Tensor:
        u, v = take(rows, states, actions), take(rows, goals, goal_actions)
        return self._between(u, v if actions is not None else v.unsqueeze(1))

    def discounted_at(
        self, rows: Tensor, states: Tensor, actions: Tensor | None, goals: Tensor, goal_actions: Tensor
    ) -> Tensor:
        return self._discount(self.distance_at(rows, states, actions, goals, goal_actions))

    def distance(self, state: Tensor, action: Tensor | None, goal: Tensor, goal_action: Tensor | None) -> Tensor:
        return self._between(*pair_up(state, action, goal, goal_action))

    def _between(self, u: Tensor, v: Tensor) -> Tensor:
        distance: Tensor = self.head.between(u, v) if self._in_parts else self.head(u, v)
        return distance
