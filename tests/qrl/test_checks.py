"""The contract checks find every breach and name the broken point of the contract."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from qrl import QModelSpec, list_q_models, make_q_model, register_head, register_q_model
from qrl.checks import SPEC, check_q_model, quick_check
from qrl.errors import ContractError
from qrl.heads import Euclidean, Head
from qrl.q_models import LatentQModel, QModel

pytestmark = pytest.mark.usefixtures("restored_registry")


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


class Vague(Sound):
    def __init__(self, spec: QModelSpec) -> None:
        super().__init__(spec)
        self.guaranteed_quasimetric = "mostly"  # type: ignore[assignment]


class StateGoals(Sound):
    goal_kind = "state"


class OtherSpec(Sound):
    def __init__(self, spec: QModelSpec) -> None:
        super().__init__(QModelSpec(spec.observation_dim, spec.num_actions, discount=0.5))


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


class SwappedRows(Sound):
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
        self.batches = 0.0

    def encode(self, observations: Tensor, counts: Tensor | None = None) -> Tensor:
        self.batches += float(self.training)
        return super().encode(observations, counts)

    def distance(self, *arguments: Any) -> Tensor:
        return super().distance(*arguments) * (1 + self.batches)


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
        (BadKind, "goal_kind is 'image'"),
        (Vague, "guaranteed_quasimetric is 'mostly', neither True nor False"),
        (StateGoals, "goal_kind must be 'state-action'"),
        (OtherSpec, r"spec is .*0\.5.*, but it was built with .*0\.9"),
        (Restless, r"\(The same seed gives the same model.*\): .* differs by"),
        (ColumnsFirst, "rows should come first|shape"),
        (ForgetsGoalActions, r"distance\(s, None, g, a'\) differs by"),
        (SwappedRows, "discounted_at differs by"),
        (WrongDiscount, r"\(Discounted = discount \*\* distance.*\): discounted differs by"),
        (WrongSteps, "steps_to_goal differs by"),
        (NaNGradient, "the gradient of encoder.* is not finite"),
        (Detached, "no gradient reaches unused"),
        (IgnoresCounts, "the encoding with counts differs by"),
        (CountsInEval, "the encoding with counts in eval mode differs by"),
        (Forgets, "the output after loading differs by"),
        (LateProjection, "the output after project_ differs by"),
        (Squared, r" latents: d\(x, z\) exceeds d\(x, y\) \+ d\(y, z\) by"),
        (Negative, "below 0"),
        (Shifted, r"d\(x, x\) is 1, not 0"),
    ],
)
def test_each_breach_is_named(cls: type, message: str) -> None:
    with pytest.raises(ContractError, match=message) as caught:
        check(cls)
    assert str(caught.value).startswith("model broken breaks the contract (")
    assert str(caught.value).endswith(f"; its head is {cls.__name__}") == issubclass(cls, Head)


def test_explicit_sizes_are_kept() -> None:
    sizes = []

    class Recorded(Sound):
        def __init__(self, spec: QModelSpec, hidden_sizes: tuple[int, ...] = (2048,)) -> None:
            super().__init__(spec, hidden_sizes)
            sizes.append(hidden_sizes)

    register_q_model("recorded")(Recorded)
    check_q_model("recorded")
    assert set(sizes) == {(16, 16)}
    sizes.clear()
    check_q_model("recorded", hidden_sizes=(3,))
    assert set(sizes) == {(3,)}


# The quick check of a built model


class WrongShape(Squared):
    def components(self, u: Tensor, v: Tensor) -> Tensor:
        return (u - v).abs()


class NotANumber(Squared):
    def components(self, u: Tensor, v: Tensor) -> Tensor:
        return (u - v).abs().sum(-1) * float("nan")


class NotANumberFarAway(Squared):
    def components(self, u: Tensor, v: Tensor) -> Tensor:
        distance = (u - v).abs().sum(-1)
        return torch.where(distance > 1e5, float("nan"), distance)


class Raises(Squared):
    def components(self, u: Tensor, v: Tensor) -> Tensor:
        raise IndexError("no such coordinate")


class SquareRoot(Squared):
    def components(self, u: Tensor, v: Tensor) -> Tensor:
        return (u - v).square().sum(-1).sqrt()


class DetachedHead(Squared):
    def components(self, u: Tensor, v: Tensor) -> Tensor:
        return (u - v).detach().abs().sum(-1)


class DetachedLatents(DetachedHead):
    def __init__(self, input_size: int) -> None:
        super().__init__(input_size)
        self.scale = nn.Parameter(torch.ones(()))

    def components(self, u: Tensor, v: Tensor) -> Tensor:
        return self.scale.abs() * super().components(u, v)


def random_model(name: str, spec: QModelSpec, seed: int = 0, noise: float = 0, **params: Any) -> QModel:
    torch.manual_seed(seed)
    model = make_q_model(name, spec, **params)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(noise * torch.randn_like(parameter))
    model.project_()
    return model


@pytest.mark.parametrize("name", list_q_models())
@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_every_model_passes_the_quick_check(name: str, noise: float) -> None:
    for seed, spec in enumerate([SPEC, QModelSpec(2, 1, 0.95), QModelSpec(18, 7, 0.99)]):
        quick_check(name, random_model(name, spec, seed, noise, hidden_sizes=(32, 16)))


def test_the_quick_check_works_at_full_size() -> None:
    quick_check("iqe-maxmean", random_model("iqe-maxmean", SPEC))


def test_the_quick_check_accepts_unused_parameters() -> None:
    quick_check("unused", Detached(SPEC))


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (WrongShape, r"\(Shapes and values .*\): distance\(s, None, g, None\) has the shape \(7, 4, 3, 3, 256\)"),
        (NotANumber, "distance is not finite"),
        (NotANumberFarAway, "latents: a distance is not finite"),
        (Raises, "IndexError: no such coordinate"),
        (Squared, r" latents: d\(x, z\) exceeds d\(x, y\) \+ d\(y, z\) by"),
        (Negative, "below 0"),
        (Shifted, r"d\(x, x\) is 1, not 0"),
        (SquareRoot, r"\(Finite gradients .*\): the gradient of the output of encode is not finite"),
        (DetachedHead, "no gradient reaches any parameter"),
        (DetachedLatents, "no gradient reaches the output of encode"),
    ],
)
def test_the_quick_check_refuses_broken_heads(head: type[Head], message: str) -> None:
    register_head("broken")(head)
    with pytest.raises(ContractError, match=f"^model broken breaks the contract .*{message}") as caught:
        quick_check("broken", make_q_model("broken", SPEC, hidden_sizes=(8,)))
    assert str(caught.value).endswith(f"; its head is {head.__name__}")


@pytest.mark.parametrize(
    ("cls", "message"),
    [
        (NotAModel, "it is a NotAModel, not a subclass of qrl.q_models.QModel"),
        (BadKind, "goal_kind is 'image'"),
        (Vague, "guaranteed_quasimetric is 'mostly'"),
        (ColumnsFirst, "rows should come first|shape"),
        (ForgetsGoalActions, r"distance\(s, None, g, a'\) differs by"),
        (WrongSteps, "steps_to_goal differs by"),
    ],
)
def test_the_quick_check_refuses_broken_models(cls: type[QModel], message: str) -> None:
    with pytest.raises(ContractError, match=message) as caught:
        quick_check("broken", cls(SPEC))
    assert str(caught.value).startswith("model broken breaks the contract (")


def test_the_quick_check_changes_nothing() -> None:
    model = random_model("iqe-maxmean", SPEC, hidden_sizes=(8, 8)).train()
    assert isinstance(model, LatentQModel)
    model.encoder.norms[0].eval()
    tensors = {key: value.clone() for key, value in model.state_dict().items()}
    modes = [module.training for module in model.modules()]
    random_state = torch.get_rng_state()
    quick_check("iqe-maxmean", model)
    assert all(torch.equal(value, tensors[key]) for key, value in model.state_dict().items())
    assert [module.training for module in model.modules()] == modes
    assert torch.equal(torch.get_rng_state(), random_state)
    assert all(parameter.grad is None and parameter.requires_grad for parameter in model.parameters())


def test_the_full_check_keeps_the_random_state() -> None:
    torch.manual_seed(3)
    before = torch.get_rng_state()
    check_q_model("euclidean")
    assert torch.equal(torch.get_rng_state(), before)
