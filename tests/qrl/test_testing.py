"""The contract check finds what is wrong and says which point it is."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from qrl import QModelSpec, register_head, register_q_model, registry
from qrl.errors import ContractError
from qrl.heads import Euclidean, Head
from qrl.q_models import LatentQModel
from qrl.testing import check_q_model


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    before = dict(registry._registrations)
    yield
    registry._registrations.clear()
    registry._registrations.update(before)


class Sound(LatentQModel):
    def __init__(self, spec: QModelSpec, hidden_sizes: tuple[int, ...] = (8,)) -> None:
        super().__init__(spec, Euclidean(4), hidden_sizes)


def check(cls: type) -> None:
    (register_head if issubclass(cls, Head) else register_q_model)("broken")(cls)
    check_q_model("broken")


def test_a_sound_model_passes() -> None:
    check(Sound)


class NotAModel(nn.Module):
    def __init__(self, spec: QModelSpec) -> None:
        super().__init__()


class BadKind(Sound):
    goal_kind = "image"  # type: ignore[assignment]


class Restless(Sound):
    def distance(self, *arguments: Any) -> Tensor:
        return super().distance(*arguments) + torch.rand(())


class ColumnsFirst(Sound):
    def encode(self, observations: Tensor, counts: Tensor | None = None) -> Tensor:
        return super().encode(observations, counts).transpose(0, 1)


class ForgetsGoalActions(Sound):
    def distance(self, state: Tensor, action: Tensor | None, goal: Tensor, goal_action: Tensor | None) -> Tensor:
        return super().distance(state, action, goal, None if goal_action is None else 0 * goal_action)


class WrongDiscount(Sound):
    def discounted(self, *arguments: Any) -> Tensor:
        return torch.exp(-self.distance(*arguments))


class WrongPlaces(Sound):
    def discounted_at(self, rows: Tensor, states: Tensor, actions: Any, goals: Tensor, goal_actions: Tensor) -> Tensor:
        return super().discounted_at(rows, goals, actions, states, goal_actions)


class WrongSteps(Sound):
    def steps_to_goal(self, state: Tensor, goal: Tensor) -> Tensor:
        return super().steps_to_goal(state, goal) + 1


class NaNGradient(Sound):
    def distance(self, *arguments: Any) -> Tensor:
        return super().distance(*arguments).square().sqrt()


class Detached(Sound):
    def __init__(self, spec: QModelSpec) -> None:
        super().__init__(spec)
        self.unused = nn.Parameter(torch.zeros(3))


class IgnoresCounts(Sound):
    def encode(self, observations: Tensor, counts: Tensor | None = None) -> Tensor:
        return super().encode(observations)


class CountsInEval(Sound):
    def encode(self, observations: Tensor, counts: Tensor | None = None) -> Tensor:
        weight = 1.0 if counts is None or self.training else counts.view(-1, 1, 1)
        return super().encode(observations, counts) * weight


class Forgets(Sound):
    def __init__(self, spec: QModelSpec) -> None:
        super().__init__(spec)
        self.longest = 0.0

    def encode(self, observations: Tensor, counts: Tensor | None = None) -> Tensor:
        self.longest += float(self.training)
        return super().encode(observations, counts)

    def distance(self, *arguments: Any) -> Tensor:
        return super().distance(*arguments) * (1 + self.longest)


class LateProjection(Sound):
    def project_(self) -> None:
        with torch.no_grad():
            self.encoder.output.weight.clamp_(min=0)


class Squared(Head):
    guaranteed_quasimetric = True

    def components(self, u: Tensor, v: Tensor) -> Tensor:
        return (u - v).square().sum(-1)


class Negative(Squared):
    def components(self, u: Tensor, v: Tensor) -> Tensor:
        return (u - v).sum(-1)


class Shifted(Squared):
    def components(self, u: Tensor, v: Tensor) -> Tensor:
        return (u - v).abs().sum(-1) + 1


@pytest.mark.parametrize(
    ("cls", "message"),
    [
        (NotAModel, "no subclass of"),
        (BadKind, "goal_kind is 'image'"),
        (Restless, r"\(The same seed gives the same model.*\): .* differs by"),
        (ColumnsFirst, "rows should come first|shape"),
        (ForgetsGoalActions, r"distance\(s, None, g, a'\) differs by"),
        (WrongPlaces, "discounted_at differs by"),
        (WrongDiscount, r"\(Discounted = discount \*\* distance.*\): discounted differs by"),
        (WrongSteps, "steps_to_goal differs by"),
        (NaNGradient, "the gradient of encoder.* is not finite"),
        (Detached, "no gradient reaches unused"),
        (IgnoresCounts, "the encoding with counts differs by"),
        (CountsInEval, "the encoding with counts in eval mode differs by"),
        (Forgets, "the answer after loading differs by"),
        (LateProjection, "the answer after project_ differs by"),
        (Squared, r" latents: d\(x, z\) exceeds d\(x, y\) \+ d\(y, z\) by"),
        (Negative, "below 0"),
        (Shifted, r"d\(x, x\) is 1, not 0"),
    ],
)
def test_each_breach_is_named(cls: type, message: str) -> None:
    with pytest.raises(ContractError, match=message) as caught:
        check(cls)
    assert str(caught.value).startswith("broken breaks the contract (")


def test_given_sizes_are_kept() -> None:
    made = []

    class Recorded(Sound):
        def __init__(self, spec: QModelSpec, hidden_sizes: tuple[int, ...] = (2048,)) -> None:
            super().__init__(spec, hidden_sizes)
            made.append(hidden_sizes)

    register_q_model("recorded")(Recorded)
    check_q_model("recorded")
    assert set(made) == {(16, 16)}
    made.clear()
    check_q_model("recorded", hidden_sizes=(3,))
    assert set(made) == {(3,)}


def test_the_callers_randomness_is_left_alone() -> None:
    torch.manual_seed(3)
    before = torch.get_rng_state()
    check_q_model("euclidean")
    assert torch.equal(torch.get_rng_state(), before)
