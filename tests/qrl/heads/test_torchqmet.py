import importlib.util
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from qrl.common.errors import UserError
from qrl.errors import ShapeError
from qrl.heads import IQE, L1, MRN, PQEGG, PQELH, DeepNorm, Head, WideNorm, load_torchqmet
from tests.heads import randn
from tests.qrl.heads import torchqmet_reference as reference

SIZE, HIDDEN, OUTPUT, COMPONENTS, WIDTH = 8, 11, 3, 4, 6
Shapes = dict[str, tuple[int, ...]]


def deep_linear_shapes(name: str, rows: int, columns: int) -> Shapes:
    sizes = [rows, 64, 64, 64, columns]
    factors: Shapes = {f"{name}.mats.{i}": (sizes[i], sizes[i + 1]) for i in range(4)}
    return factors | {f"{name}.bias": (rows, columns)}


ALPHA: Shapes = {"reduction.raw_alpha": ()}
PROJECTORS: Shapes = {
    f"{part}_proj.{layer}": shape
    for part in ("sym", "asym")
    for layer, shape in {
        "0.weight": (HIDDEN, SIZE),
        "0.bias": (HIDDEN,),
        "2.weight": (OUTPUT, HIDDEN),
        "2.bias": (OUTPUT,),
    }.items()
}
CONCAVE: Shapes = {"transforms.0.raw_ms": (COMPONENTS, 5), "transforms.0.raw_bs_after_first": (COMPONENTS, 4)}
LAYERS: Shapes = {
    "u0.weight": (COMPONENTS, SIZE),
    **{f"us_after_first.{i}.weight": (COMPONENTS, SIZE) for i in range(2)},
    **{f"ws_after_first.{i}.weight": (COMPONENTS, COMPONENTS) for i in range(2)},
}
MAX_RELU: Shapes = {f"activations.{i}.raw_weights": (COMPONENTS // 2, 2) for i in range(3)}
MEASURE: Shapes = {"measure.log_sigma2": (4, 2)} | deep_linear_shapes("measure.scales_net", SIZE, SIZE)
DISTANCE = deep_linear_shapes("reduction.alpha_net", 1, 4)
DISCOUNTED = deep_linear_shapes("reduction.beta_net", 4, 1)

# Our head, the shapes of torchqmet's state dict, its documented forward pass, and torchqmet's own class and arguments
CASES: dict[str, tuple[Head, Shapes, reference.Distance, str, dict[str, Any]]] = {
    "iqe": (IQE(SIZE, 4), ALPHA, reference.iqe(4), "IQE", {"dim_per_component": 4}),
    "iqe-sum": (
        IQE(SIZE, 2, reduction="sum"),
        {},
        reference.iqe(2, lambda _, q: float(q.sum())),
        "IQE",
        {"dim_per_component": 2, "reduction": "sum"},
    ),
    "mrn": (
        MRN(SIZE, HIDDEN, output_size=OUTPUT),
        PROJECTORS,
        reference.mrn(2),
        "MRN",
        {"proj_hidden_size": HIDDEN, "proj_output_size": OUTPUT, "warn_if_not_quasimetric": False},
    ),
    "mrn-fixed": (
        MRN(SIZE, HIDDEN, fixed=True, output_size=OUTPUT),
        PROJECTORS,
        reference.mrn(1),
        "MRNFixed",
        {"proj_hidden_size": HIDDEN, "proj_output_size": OUTPUT},
    ),
    "deep-norm": (
        DeepNorm(SIZE, COMPONENTS),
        LAYERS | MAX_RELU | CONCAVE | ALPHA,
        reference.deep_norm,
        "DeepNorm",
        {"num_components": COMPONENTS, "activation": "maxrelu", "warn_if_not_quasimetric": False},
    ),
    "deep-norm-fixed": (
        DeepNorm(SIZE, COMPONENTS, fixed=True),
        LAYERS | dict(list(MAX_RELU.items())[:2]) | CONCAVE | ALPHA,
        reference.deep_norm,
        "DeepNorm",
        {"num_components": COMPONENTS, "activation": "maxrelu", "final_activation": "relu"},
    ),
    "deep-norm-relu": (
        DeepNorm(SIZE, COMPONENTS, activation="relu"),
        LAYERS | CONCAVE | ALPHA,
        reference.deep_norm,
        "DeepNorm",
        {"num_components": COMPONENTS},
    ),
    "wide-norm": (
        WideNorm(SIZE, COMPONENTS, WIDTH),
        {"w.weight": (COMPONENTS * WIDTH, 2 * SIZE)} | CONCAVE | ALPHA,
        reference.wide_norm,
        "WideNorm",
        {"num_components": COMPONENTS, "output_component_size": WIDTH},
    ),
    "pqe-lh": (
        PQELH(SIZE, 2, mode="distance"),
        DISTANCE,
        reference.pqe_lh(2, reference.weighted_sum),
        "PQELH",
        {"dim_per_component": 2},
    ),
    "pqe-lh-discounted": (
        PQELH(SIZE, 2, discount=0.9),
        DISCOUNTED,
        reference.pqe_lh(2, reference.discounted(0.9)),
        "PQELH",
        {"dim_per_component": 2, "discount": 0.9},
    ),
    "pqe-gg": (
        PQEGG(SIZE, 2, mode="distance"),
        MEASURE | DISTANCE,
        reference.pqe_gg(2, reference.weighted_sum),
        "PQEGG",
        {"dim_per_component": 2},
    ),
    "pqe-gg-discounted": (
        PQEGG(SIZE, 2, discount=0.9),
        MEASURE | DISCOUNTED,
        reference.pqe_gg(2, reference.discounted(0.9)),
        "PQEGG",
        {"dim_per_component": 2, "discount": 0.9},
    ),
}
every_case = pytest.mark.parametrize("name", CASES)


def random_state(name: str) -> dict[str, Tensor]:
    shapes = CASES[name][1]
    state = {key: torch.from_numpy(np.asarray(value)) for key, value in reference.random_state(shapes).items()}
    for key in state:
        if ".mats." in key:
            state[key] /= 4  # rates of some units at most
    if "transforms.0.raw_ms" in state:
        state["transforms.0.bs_first_constant"] = torch.zeros(COMPONENTS, 1, dtype=torch.float64)
    return state


@every_case
def test_the_loaded_head_equals_the_documented_forward_pass(name: str) -> None:
    head, _, distance, *_ = CASES[name]
    state = random_state(name)
    load_torchqmet(head.double(), state)
    u, v = randn(5, SIZE), randn(5, SIZE, seed=1)
    arrays = {key: value.numpy() for key, value in state.items()}
    expected = [distance(arrays, a, b) for a, b in zip(u.numpy(), v.numpy(), strict=True)]
    assert head(u, v).tolist() == pytest.approx(expected, rel=1e-6, abs=1e-9)
    assert len({round(value, 6) for value in expected}) == 5  # they tell the weights apart


@every_case
@pytest.mark.skipif(importlib.util.find_spec("torchqmet") is None, reason="torchqmet is not installed")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_loaded_head_equals_torchqmet(name: str) -> None:
    head, _, _, cls, arguments = CASES[name]
    import torchqmet

    theirs = getattr(torchqmet, cls)(SIZE, **arguments).double()
    theirs.load_state_dict(random_state(name))
    load_torchqmet(head.double(), theirs.state_dict())
    u, v = randn(50, SIZE), randn(50, SIZE, seed=1)
    distances = head(u, v)
    if "discount" in arguments:
        distances = arguments["discount"] ** distances
    torch.testing.assert_close(distances, theirs(u, v), rtol=1e-9, atol=1e-12)


@every_case
def test_every_weight_is_needed_and_checked(name: str) -> None:
    head, shapes, *_ = CASES[name]
    before = {key: value.clone() for key, value in head.state_dict().items()}
    for key in shapes:
        state = random_state(name)
        wrong = {"missing": None, "shape": torch.zeros(3, 7, 1), "floating-point": torch.zeros(shapes[key]).long()}
        for message, value in wrong.items():
            changed = {other: weight for other, weight in state.items() if other != key}
            changed |= {} if value is None else {key: value}
            with pytest.raises(UserError, match=f"model.{key}.*{message}"):
                load_torchqmet(head, {f"model.{other}": weight for other, weight in changed.items()}, prefix="model.")
    assert all(torch.equal(value, before[key]) for key, value in head.state_dict().items())


def test_a_prefix_selects_part_of_a_model() -> None:
    head = IQE(8, 4)
    load_torchqmet(head, {"head.reduction.raw_alpha": torch.tensor(2.0), "encoder.weight": torch.ones(2)}, "head.")
    assert head.state_dict()["reduction.raw_alpha"] == 2


def test_what_torchqmet_calls_otherwise_is_refused() -> None:
    with pytest.raises(
        UserError, match=r"'reduction.raw_alpha' has no counterpart in IQE\(input_size=8.*other arguments"
    ):
        load_torchqmet(IQE(8, reduction="sum"), {"reduction.raw_alpha": torch.tensor(-1.0)})
    with pytest.raises(UserError, match="L1 has no counterpart in torchqmet; those that do: IQE, MRN"):
        load_torchqmet(L1(8), {})
    with pytest.raises(ShapeError, match=r"w.weight has the shape \(24, 8\), but WideNorm\(.*\) needs \(24, 16\)"):
        load_torchqmet(WideNorm(SIZE, 4, 6), random_state("wide-norm") | {"w.weight": torch.zeros(24, 8)})
    state = random_state("wide-norm") | {"transforms.0.bs_first_constant": torch.ones(COMPONENTS, 1)}
    with pytest.raises(UserError, match="bs_first_constant must be zero"):
        load_torchqmet(WideNorm(SIZE, 4, 6), state)
    state = random_state("pqe-gg") | {"measure.log_sigma2": torch.full((4, 2), -11.0)}
    with pytest.raises(UserError, match=r"log_sigma2 exceeds 10.0 in magnitude"):
        load_torchqmet(PQEGG(SIZE, 2, mode="distance"), state)


def test_negative_weights_are_projected_as_torchqmet_does() -> None:
    head, state = WideNorm(SIZE, COMPONENTS, WIDTH), random_state("wide-norm")
    load_torchqmet(head, state)
    assert (state["w.weight"] < 0).any()
    assert (head.weights.weight >= 0).all()
