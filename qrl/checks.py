"""The contract checks of Q-models; their public home is `qrl.testing`."""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor

from qrl.errors import ContractError
from qrl.q_models.base import QModel
from qrl.q_models.latent import LatentQModel
from qrl.readouts import D_MIN
from qrl.registry import find, make_q_model
from qrl.spec import QModelSpec

SPEC = QModelSpec(observation_dim=5, num_actions=3, discount=0.9)
ROWS, GOALS = 7, 4
_POINTS = 27  # state-action pairs between which the axioms are checked


class _Tolerances(NamedTuple):
    """Allowed errors, relative to the values."""

    equality: float
    identity: float
    axioms: float


_FLOAT64 = _Tolerances(equality=1e-9, identity=1e-12, axioms=1e-9)
_FLOAT32 = _Tolerances(equality=1e-3, identity=1e-4, axioms=1e-4)

Make = Callable[[], QModel]
Check = Callable[[Make, Tensor, _Tolerances], None]


def check_q_model(name: str, **params: Any) -> None:
    """Raise a `ContractError` that says which point of the contract the model breaks, and by how much.

    `params` are parameters of the model. Unless they set the hidden layers, these are narrow: the contract does not
    depend on the width. All checks run in float64.
    """
    registration = find(name)
    head = registration.cls if registration.is_head else None
    if "hidden_sizes" in registration.parameters.model_fields:
        params = {"hidden_sizes": (16, 16)} | params

    def make() -> QModel:
        torch.manual_seed(0)
        return make_q_model(name, SPEC, **params).double()

    with torch.random.fork_rng():
        torch.manual_seed(0)
        observations = torch.randn(ROWS, SPEC.observation_dim, dtype=torch.float64)
        for check in (
            _declarations,
            _spec,
            _determinism,
            _shapes,
            _readouts,
            _gradients,
            _counts,
            _saving,
            _projection,
            _axioms_for_all_weights,
        ):
            _run(name, head, check, make, observations, _FLOAT64)


def quick_check(name: str, model: QModel) -> None:
    """Check a built model as it is: declarations, shapes, finite values and gradients, and the axioms if declared.

    Fast at any size. The model and the global random state stay as they are. Raises a `ContractError`.
    """
    head = type(model.head) if isinstance(model, LatentQModel) else None
    _run(name, head, _declarations, lambda: model, torch.empty(0), _FLOAT32)
    example = next(model.parameters(), torch.empty(0))
    with _eval_mode(model), torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        observations = torch.randn(ROWS, model.spec.observation_dim).to(example)
        for check in (_shapes, _axioms):
            _run(name, head, check, lambda: model, observations, _FLOAT32)
    with torch.random.fork_rng(devices=[]):
        # A copy, because training mode updates running statistics.
        _run(name, head, _gradients_of_a_step, lambda: copy.deepcopy(model), observations, _FLOAT32)


@contextmanager
def _eval_mode(model: QModel) -> Iterator[None]:
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, mode in modes:
            module.training = mode


def _run(name: str, head: type | None, check: Check, make: Make, observations: Tensor, tolerances: _Tolerances) -> None:
    title = (check.__doc__ or "").strip().rstrip(".")
    try:
        check(make, observations, tolerances)
    except Exception as error:
        reason = str(error) if isinstance(error, ContractError) else f"{type(error).__name__}: {error}"
        suffix = f"; its head is {head.__name__}" if head is not None else ""
        raise ContractError(f"model {name} breaks the contract ({title}): {reason}{suffix}") from error


def _demand(truth: bool, message: str) -> None:
    if not truth:
        raise ContractError(message)


def _same(what: str, measured: Tensor, expected: Tensor, tolerance: float) -> None:
    _demand(
        measured.shape == expected.shape,
        f"{what} has the shape {tuple(measured.shape)}, but should have {tuple(expected.shape)}",
    )
    # Equal infinities are equal; their difference would be NaN.
    errors = torch.where(measured == expected, 0.0, (measured - expected).abs() / (1 + expected.abs()))
    error = errors.max().item()
    _demand(error <= tolerance, f"{what} differs by {error:.3g}, more than {tolerance:g}, from what it should equal")


def _finite(what: str, values: Tensor) -> None:
    _demand(bool(values.isfinite().all()), f"{what} is not finite")


def _declarations(make: Make, observations: Tensor, tolerances: _Tolerances) -> None:
    """It is a QModel that declares goal_kind and guaranteed_quasimetric."""
    model = make()
    _demand(isinstance(model, QModel), f"it is a {type(model).__name__}, not a subclass of qrl.q_models.QModel")
    _demand(model.goal_kind in ("state-action", "state"), f"goal_kind is {model.goal_kind!r}")
    guaranteed = model.guaranteed_quasimetric
    _demand(isinstance(guaranteed, bool), f"guaranteed_quasimetric is {guaranteed!r}, neither True nor False")
    _demand(
        not guaranteed or model.goal_kind == "state-action",
        "a quasimetric needs goals of the same kind as states: goal_kind must be 'state-action'",
    )


def _spec(make: Make, observations: Tensor, tolerances: _Tolerances) -> None:
    """It keeps the spec that it was built with."""
    _demand(make().spec == SPEC, f"spec is {make().spec}, but it was built with {SPEC}")


def _determinism(make: Make, observations: Tensor, tolerances: _Tolerances) -> None:
    """The same seed gives the same model, and the same input the same output."""
    first, second = make().eval(), make().eval()
    distances = _all_distances(first, observations)
    _same("the output of a model built again", _all_distances(second, observations), distances, 0)
    _same("a second output", _all_distances(first, observations), distances, 0)
    one_by_one = torch.cat([first.encode(row) for row in observations.split(1)])
    _same("encoding rows one by one in eval mode", one_by_one, first.encode(observations), tolerances.equality)


def _shapes(make: Make, observations: Tensor, tolerances: _Tolerances) -> None:
    """Shapes and values of encode, distance, discounted and steps_to_goal for all kinds of arguments."""
    model = make().eval()
    encoded = model.encode(observations)
    shape = tuple(encoded.shape)
    _demand(shape[:1] == (ROWS,), f"encode gives the shape {shape}, but {ROWS} rows should come first")
    _finite("encode", encoded)
    state, goal = encoded[:, None], encoded[None, :GOALS]
    num_actions = model.spec.num_actions
    goal_actions = num_actions if model.goal_kind == "state-action" else 1
    generator = torch.Generator().manual_seed(1)
    action, goal_action = (
        torch.randint(num_actions, (ROWS, GOALS), generator=generator).to(encoded.device) for _ in range(2)
    )
    column = goal_action if goal_actions > 1 else torch.zeros_like(goal_action)
    for method in (model.distance, model.discounted):
        what = method.__name__
        table = method(state, None, goal, None)
        expected_shape = (ROWS, GOALS, num_actions, goal_actions)
        _demand(
            table.shape == expected_shape,
            f"{what}(s, None, g, None) has the shape {tuple(table.shape)}, not {expected_shape}",
        )
        _finite(what, table)
        by_action = table.gather(2, action[..., None, None].expand(-1, -1, 1, goal_actions)).squeeze(2)
        by_goal = table.gather(3, column[..., None, None].expand(-1, -1, num_actions, 1)).squeeze(3)
        by_both = by_action.gather(2, column[..., None]).squeeze(2)
        _same(f"{what}(s, a, g, None)", method(state, action, goal, None), by_action, tolerances.equality)
        _same(f"{what}(s, None, g, a')", method(state, None, goal, goal_action), by_goal, tolerances.equality)
        _same(f"{what}(s, a, g, a')", method(state, action, goal, goal_action), by_both, tolerances.equality)
        pairwise = method(encoded[:GOALS], action[0], encoded[:GOALS], goal_action[0])
        diagonal = method(encoded[:GOALS, None], action[:1].mT, encoded[None, :GOALS], goal_action[:1]).diagonal()
        _same(f"{what} of rows pair by pair", pairwise, diagonal, tolerances.equality)
    distances = model.distance(state, None, goal, None)
    expected = distances.mean(-1) - 1 if model.goal_kind == "state-action" else distances.squeeze(-1)
    _same("steps_to_goal", model.steps_to_goal(state, goal), expected, tolerances.equality)


def _readouts(make: Make, observations: Tensor, tolerances: _Tolerances) -> None:
    """Discounted = discount ** distance wherever it lies in [D_MIN, 1]."""
    model = make().eval()
    encoded = model.encode(observations)
    distance = model.distance(encoded[:, None], None, encoded[None], None)
    discounted = model.discounted(encoded[:, None], None, encoded[None], None)
    inside = (discounted >= D_MIN) & (discounted <= 1)
    _demand(bool(inside.any()), "no discounted distance of a new model lies within [D_MIN, 1]")
    _same("discounted", discounted[inside], SPEC.discount ** distance[inside], 1e-7)
    states, goals, goal_actions = torch.arange(4), torch.tensor([2, 0, 2, 6]), torch.tensor([0, 2, 1, 1])
    for actions in (None, goal_actions.flip(0)):
        for method, method_at in ((model.distance, model.distance_at), (model.discounted, model.discounted_at)):
            expected = method(encoded[states], actions, encoded[goals], goal_actions)
            measured = method_at(encoded, states, actions, goals, goal_actions)
            _same(method_at.__name__, measured, expected, tolerances.equality)


def _gradients(make: Make, observations: Tensor, tolerances: _Tolerances) -> None:
    """Finite gradients reach every trainable parameter, even where state and goal are equal."""
    model = make().train()
    encoded = model.encode(observations)
    state, goal = encoded[:, None], encoded[None]
    (model.discounted(state, None, goal, None).sum() + model.distance(state, None, goal, None).sum()).backward()
    for key, parameter in model.named_parameters():
        if parameter.requires_grad:
            _demand(parameter.grad is not None, f"no gradient reaches {key}")
            assert parameter.grad is not None
            _finite(f"the gradient of {key}", parameter.grad)


def _gradients_of_a_step(make: Make, observations: Tensor, tolerances: _Tolerances) -> None:
    """Finite gradients of discounted distances reach the encoder, even where state and goal are equal."""
    model = make().train()
    with torch.enable_grad():
        encoded = model.encode(observations)
        discounted = model.discounted(encoded[:, None], None, encoded[None], None)
    _demand(discounted.requires_grad, "no gradient reaches any parameter; is the distance detached?")
    parameters = {key: parameter for key, parameter in model.named_parameters() if parameter.requires_grad}
    inputs = ({"the output of encode": encoded} if encoded.requires_grad else {}) | parameters
    gradients = torch.autograd.grad(discounted.sum(), list(inputs.values()), allow_unused=True)
    for what, gradient in zip(inputs, gradients, strict=True):
        _demand(gradient is not None or what in parameters, f"no gradient reaches {what}; is a latent detached?")
        if gradient is not None:
            _finite(f"the gradient of {what}", gradient)


def _counts(make: Make, observations: Tensor, tolerances: _Tolerances) -> None:
    """Encoding distinct rows with counts equals encoding all repetitions; in eval mode, counts have no effect."""
    counts = torch.arange(1, ROWS + 1)
    counted, repeated = make().train(), make().train()
    distinct = counted.encode(observations, counts)
    everything = repeated.encode(observations.repeat_interleave(counts, 0))
    _same("the encoding with counts", distinct.repeat_interleave(counts, 0), everything, tolerances.equality)
    for (key, buffer), (_, expected) in zip(counted.named_buffers(), repeated.named_buffers(), strict=True):
        _same(f"the buffer {key}", buffer.double(), expected.double(), tolerances.equality)
    counted.eval()
    with torch.no_grad():  # as learners call their target network
        with_counts, without = counted.encode(observations, counts), counted.encode(observations)
        _same("the encoding with counts in eval mode", with_counts, without, tolerances.equality)


def _saving(make: Make, observations: Tensor, tolerances: _Tolerances) -> None:
    """The state_dict holds everything that the model has learned."""
    model = make()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.rand_like(parameter))
    model.train().encode(observations)  # updates running statistics
    loaded = make()
    loaded.load_state_dict(model.state_dict())
    expected = _all_distances(model.eval(), observations)
    _same("the output after loading", _all_distances(loaded.eval(), observations), expected, 0)


def _projection(make: Make, observations: Tensor, tolerances: _Tolerances) -> None:
    """project_ is a no-op on a freshly built model."""
    model = make().eval()
    before = _all_distances(model, observations)
    model.project_()
    _same("the output after project_", _all_distances(model, observations), before, 0)


def _axioms_for_all_weights(make: Make, observations: Tensor, tolerances: _Tolerances) -> None:
    """If it declares them, the axioms of a quasimetric hold for all weights."""
    model = make().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter))
        model.project_()
        _axioms(lambda: model, observations, tolerances)


def _axioms(make: Make, observations: Tensor, tolerances: _Tolerances) -> None:
    """If it declares them, the axioms of a quasimetric hold."""
    model = make()
    if not model.guaranteed_quasimetric:
        return
    encoded = model.encode(observations)
    states = torch.randn(_POINTS, *encoded.shape[1:]).to(encoded)
    actions = torch.randint(model.spec.num_actions, (_POINTS,)).to(encoded.device)
    for kind, latents in _adversarial(states).items():
        distances = model.distance(latents[:, None], actions[:, None], latents[None], actions[None])
        _check_axioms(kind, distances, tolerances)


def _adversarial(states: Tensor) -> dict[str, Tensor]:
    scales = torch.logspace(-3, 3, len(states)).to(states).view(-1, *[1] * (states.ndim - 1))
    return {
        "random": states,
        "equal": states[:1].expand_as(states).clone(),
        "far apart": states * scales,
        "huge": states * 1e6,
        "tiny": states * 1e-6,
        "tied": states.round(),
    }


def _check_axioms(kind: str, d: Tensor, tolerances: _Tolerances) -> None:
    """`d` (points, points) holds the distances between all points."""
    _finite(f"{kind} latents: a distance", d)
    scale = max(1.0, d.abs().max().item())
    least = d.min().item()
    rounding = 0.0 if d.dtype == torch.float64 else tolerances.axioms * scale
    _demand(least >= -rounding, f"{kind} latents: a distance is {least:.3g}, below 0")
    identity = d.diagonal().abs().max().item()
    _demand(identity <= tolerances.identity * scale, f"{kind} latents: d(x, x) is {identity:.3g}, not 0")
    excess = (d[:, None, :] - d[:, :, None] - d[None]).max().item()
    _demand(
        excess <= tolerances.axioms * scale,
        f"{kind} latents: d(x, z) exceeds d(x, y) + d(y, z) by {excess:.3g}, more than rounding",
    )


def _all_distances(model: QModel, observations: Tensor) -> Tensor:
    with torch.no_grad():
        encoded = model.encode(observations)
        return model.distance(encoded[:, None], None, encoded[None], None)
