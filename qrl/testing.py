"""The public contract check of Q-models: for the authors of plugins, and run over the whole registry by qrl's tests."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from qrl.errors import ContractError
from qrl.q_models.base import QModel
from qrl.readouts import D_MIN
from qrl.registry import find, make_q_model
from qrl.spec import QModelSpec

SPEC = QModelSpec(observation_dim=5, num_actions=3, discount=0.9)
ROWS = 7


def check_q_model(name: str, **params: Any) -> None:
    """Raise a `ContractError` that says which point of the contract the model breaks, and by how much.

    `params` are parameters of the model. Unless they say otherwise, hidden layers are made narrow: the contract does
    not depend on the width. Everything is checked in float64.
    """
    if "hidden_sizes" in find(name).parameters.model_fields:
        params = {"hidden_sizes": (16, 16)} | params

    def make() -> QModel:
        torch.manual_seed(0)
        return make_q_model(name, SPEC, **params).double()

    with torch.random.fork_rng():
        torch.manual_seed(0)
        observations = torch.randn(ROWS, SPEC.observation_dim, dtype=torch.float64)
        for check in (
            _declarations,
            _determinism,
            _shapes,
            _readings,
            _gradients,
            _counts,
            _saving,
            _projection,
            _axioms,
        ):
            _checked(name, check, make, observations)


def _checked(
    name: str, check: Callable[[Callable[[], QModel], Tensor], None], make: Callable[[], QModel], observations: Tensor
) -> None:
    title = (check.__doc__ or "").strip().rstrip(".")
    try:
        check(make, observations)
    except ContractError as error:
        raise ContractError(f"{name} breaks the contract ({title}): {error}") from None
    except Exception as error:
        raise ContractError(f"{name} breaks the contract ({title}): {type(error).__name__}: {error}") from error


def _demand(truth: bool, message: str) -> None:
    if not truth:
        raise ContractError(message)


def _same(what: str, measured: Tensor, expected: Tensor, tolerance: float = 1e-9) -> None:
    _demand(
        measured.shape == expected.shape,
        f"{what} has the shape {tuple(measured.shape)}, but should have {tuple(expected.shape)}",
    )
    # Equal infinities are equal; their difference would be NaN.
    error = torch.where(measured == expected, 0.0, (measured - expected).abs() / (1 + expected.abs())).max().item()
    _demand(error <= tolerance, f"{what} differs by {error:.3g}, more than {tolerance:g}, from what it should equal")


def _declarations(make: Callable[[], QModel], observations: Tensor) -> None:
    """It is a QModel that declares goal_kind and guaranteed_quasimetric."""
    model = make()
    _demand(isinstance(model, QModel), f"it is a {type(model).__name__}, which is no subclass of qrl.q_models.QModel")
    _demand(model.goal_kind in ("state-action", "state"), f"goal_kind is {model.goal_kind!r}")
    _demand(
        isinstance(model.guaranteed_quasimetric, bool), f"guaranteed_quasimetric is {model.guaranteed_quasimetric!r}"
    )
    _demand(model.spec == SPEC, f"spec is {model.spec}, but it was made with {SPEC}")


def _determinism(make: Callable[[], QModel], observations: Tensor) -> None:
    """The same seed gives the same model, and the same question the same answer."""
    first, second = make().eval(), make().eval()
    _same("the answer of a model made again", _all_pairs(second, observations), _all_pairs(first, observations), 0)
    _same("a second answer", _all_pairs(first, observations), _all_pairs(first, observations), 0)
    alone = torch.cat([first.encode(row) for row in observations.split(1)])
    _same("encoding rows one by one in eval mode", alone, first.encode(observations))


def _shapes(make: Callable[[], QModel], observations: Tensor) -> None:
    """Shapes and values of encode, distance, discounted and steps_to_goal for every use."""
    model = make().eval()
    encoded = model.encode(observations)
    _demand(
        encoded.shape[0] == ROWS, f"encode gives the shape {tuple(encoded.shape)}, but {ROWS} rows should come first"
    )
    state, goal = encoded[:, None], encoded[None, :4]
    goal_actions = SPEC.num_actions if model.goal_kind == "state-action" else 1
    generator = torch.Generator().manual_seed(1)
    action = torch.randint(SPEC.num_actions, (ROWS, 4), generator=generator)
    goal_action = torch.randint(SPEC.num_actions, (ROWS, 4), generator=generator)
    for ask in (model.distance, model.discounted):
        what = ask.__name__
        table = ask(state, None, goal, None)
        shape = (ROWS, 4, SPEC.num_actions, goal_actions)
        _demand(table.shape == shape, f"{what}(s, None, g, None) has the shape {tuple(table.shape)}, not {shape}")
        by_action = table.gather(2, action[..., None, None].expand(-1, -1, 1, goal_actions)).squeeze(2)
        column = goal_action if goal_actions > 1 else torch.zeros_like(goal_action)
        by_goal = table.gather(3, column[..., None, None].expand(-1, -1, SPEC.num_actions, 1)).squeeze(3)
        by_both = by_action.gather(2, column[..., None]).squeeze(2)
        _same(f"{what}(s, a, g, None)", ask(state, action, goal, None), by_action)
        _same(f"{what}(s, None, g, a')", ask(state, None, goal, goal_action), by_goal)
        _same(f"{what}(s, a, g, a')", ask(state, action, goal, goal_action), by_both)
        one_to_one = ask(encoded[:4], action[0], encoded[:4], goal_action[0])
        diagonal = ask(encoded[:4, None], action[:1].mT, encoded[None, :4], goal_action[:1]).diagonal()
        _same(f"{what} of rows one to one", one_to_one, diagonal)
    distances = model.distance(state, None, goal, None)
    expected = distances.mean(-1) - 1 if model.goal_kind == "state-action" else distances.squeeze(-1)
    _same("steps_to_goal", model.steps_to_goal(state, goal), expected)


def _readings(make: Callable[[], QModel], observations: Tensor) -> None:
    """Discounted = discount ** distance wherever it lies in [D_MIN, 1]."""
    model = make().eval()
    encoded = model.encode(observations)
    distance = model.distance(encoded[:, None], None, encoded[None], None)
    discounted = model.discounted(encoded[:, None], None, encoded[None], None)
    inside = (discounted >= D_MIN) & (discounted <= 1)
    _demand(bool(inside.any()), "no discounted distance of a new model lies within [D_MIN, 1]")
    _same("discounted", discounted[inside], SPEC.discount ** distance[inside], 1e-7)
    places, others, actions = torch.arange(4), torch.tensor([2, 0, 2, 6]), torch.tensor([0, 2, 1, 1])
    for given in (None, actions.flip(0)):
        asked = model.discounted(encoded[places], given, encoded[others], actions)
        _same("discounted_at", model.discounted_at(encoded, places, given, others, actions), asked)


def _gradients(make: Callable[[], QModel], observations: Tensor) -> None:
    """Finite gradients reach every trainable parameter, also where state equals goal."""
    model = make().train()
    encoded = model.encode(observations)
    state, goal = encoded[:, None], encoded[None]
    (model.discounted(state, None, goal, None).sum() + model.distance(state, None, goal, None).sum()).backward()
    for key, parameter in model.named_parameters():
        if parameter.requires_grad:
            _demand(parameter.grad is not None, f"no gradient reaches {key}")
            assert parameter.grad is not None
            _demand(bool(parameter.grad.isfinite().all()), f"the gradient of {key} is not finite")


def _counts(make: Callable[[], QModel], observations: Tensor) -> None:
    """Encoding distinct rows with counts equals encoding all repetitions; in eval mode counts change nothing."""
    counts = torch.arange(1, ROWS + 1)
    once, repeated = make().train(), make().train()
    few, many = once.encode(observations, counts), repeated.encode(observations.repeat_interleave(counts, 0))
    _same("the encoding with counts", few.repeat_interleave(counts, 0), many)
    for (key, mine), (_, theirs) in zip(once.named_buffers(), repeated.named_buffers(), strict=True):
        _same(f"the buffer {key}", mine.double(), theirs.double())
    once.eval()
    with torch.no_grad():  # as the learner asks its target
        _same("the encoding with counts in eval mode", once.encode(observations, counts), once.encode(observations))


def _saving(make: Callable[[], QModel], observations: Tensor) -> None:
    """A state_dict holds all that a model has learned."""
    model = make()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.rand_like(parameter))
    model.train().encode(observations)  # moves running statistics
    other = make()
    other.load_state_dict(model.state_dict())
    _same("the answer after loading", _all_pairs(other.eval(), observations), _all_pairs(model.eval(), observations), 0)


def _projection(make: Callable[[], QModel], observations: Tensor) -> None:
    """project_ changes a new model in nothing."""
    model = make().eval()
    before = _all_pairs(model, observations)
    model.project_()
    _same("the answer after project_", _all_pairs(model, observations), before, 0)


def _axioms(make: Callable[[], QModel], observations: Tensor) -> None:
    """The axioms of a quasimetric, if it declares them."""
    model = make().eval()
    if not model.guaranteed_quasimetric:
        return
    with torch.no_grad():
        for parameter in model.parameters():  # the axioms must hold for all weights, not only for those at the start
            parameter.add_(torch.randn_like(parameter))
        model.project_()
        states = torch.randn(9, *model.encode(observations).shape[1:], dtype=torch.float64)
        for kind, latents in _adversarial(states).items():
            _check_axioms(kind, _pair_matrix(model, latents))


def _adversarial(states: Tensor) -> dict[str, Tensor]:
    return {
        "random": states,
        "equal": states[:1].expand_as(states).clone(),
        "far apart": states * torch.logspace(-3, 3, len(states), dtype=states.dtype).view(-1, *[1] * (states.ndim - 1)),
        "huge": states * 1e6,
        "tiny": states * 1e-6,
        "tied": states.round(),
    }


def _check_axioms(kind: str, d: Tensor) -> None:
    """`d` holds the distances between all state-action pairs of some states."""
    scale = max(1.0, d.abs().max().item())
    _demand(bool(d.isfinite().all()), f"{kind} latents: distances are not finite")
    _demand(d.min().item() >= 0, f"{kind} latents: a distance is {d.min().item():.3g}, below 0")
    identity = d.diagonal().abs().max().item()
    _demand(identity <= 1e-12 * scale, f"{kind} latents: d(x, x) is {identity:.3g}, not 0")
    excess = (d[:, None, :] - d[:, :, None] - d[None]).max().item()
    _demand(
        excess <= 1e-9 * scale, f"{kind} latents: d(x, z) exceeds d(x, y) + d(y, z) by {excess:.3g}, more than rounding"
    )


def _pair_matrix(model: QModel, states: Tensor) -> Tensor:
    """(pairs, pairs): distances between all state-action pairs."""
    table = model.distance(states[:, None], None, states[None], None)
    return table.transpose(1, 2).flatten(2, 3).flatten(0, 1)


def _all_pairs(model: QModel, observations: Tensor) -> Tensor:
    with torch.no_grad():
        encoded = model.encode(observations)
        return model.distance(encoded[:, None], None, encoded[None], None)
