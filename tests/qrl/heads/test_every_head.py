"""Properties of every registered head; new heads are included as soon as they are registered."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from qrl.catalog import count_parameters
from qrl.errors import ShapeError
from tests.heads import HEAD_NAMES, INPUT_SIZE, make_head, randn

GUARANTEED = [name for name in HEAD_NAMES if make_head(name).guaranteed_quasimetric]
every_head = pytest.mark.parametrize("name", HEAD_NAMES)
# What is asserted of single heads by name: a new head needs no line here.
METRIC_HEADS = ["euclidean", "l1", "spherical", "metric-mixture"]
ASYMMETRIC_HEADS = ["iqe", "iqe-maxmean", "iqe-sum", "pqe-lh", "pqe-gg"]
ASYMMETRIC_HEADS += ["deep-norm", "deep-norm-fixed", "wide-norm", "mrn", "mrn-fixed"]
paper_head = pytest.mark.parametrize("name", METRIC_HEADS + ASYMMETRIC_HEADS)


def test_all_heads_of_the_paper_are_registered() -> None:
    paper = {*METRIC_HEADS, *ASYMMETRIC_HEADS}
    assert paper <= set(HEAD_NAMES)
    assert paper - set(GUARANTEED) == {"deep-norm", "mrn"}


def worst_violations(
    name: str, scale: float, input_size: int = INPUT_SIZE, noise: float = 0.3, **params: int
) -> tuple[float, float, float]:
    """Over 122,825 triples: smallest distance, largest d(x, x), largest violation of the triangle inequality."""
    least, identity, excess = float("inf"), 0.0, -float("inf")
    for seed in range(25):
        head = make_head(name, input_size, seed, noise, **params)
        z = scale * randn(17, input_size, seed=seed)
        with torch.no_grad():
            d = head(z[:, None], z[None])
        least = min(least, d.min().item())
        identity = max(identity, d.diagonal().abs().max().item())
        excess = max(excess, ((d[:, None] - d[:, :, None] - d[None]) / d.max()).max().item())
    return least, identity, excess


@pytest.mark.parametrize("name", GUARANTEED)
@pytest.mark.parametrize("scale", [0.1, 3.0])
def test_axioms_over_more_than_100_000_triples(name: str, scale: float) -> None:
    least, identity, excess = worst_violations(name, scale)
    assert least >= 0
    assert identity <= 1e-12
    assert excess <= 1e-9


@pytest.mark.parametrize("name", GUARANTEED)
def test_axioms_of_narrow_heads_far_from_their_initialization(name: str) -> None:
    """Includes PQE-GG with rates of a million and more, which must not be clipped."""
    narrow = {"num_components": 2} if "deep-norm" in name else {"dim_per_component": 1} if "qe" in name else {}
    least, identity, excess = worst_violations(name, scale=3.0, input_size=2, noise=1.5, **narrow)
    assert least >= 0
    assert identity <= 1e-12
    assert excess <= 1e-9


def test_original_deep_norm_violates_the_axioms() -> None:
    # Narrow, so that all components can be negative at once, and with a transform far from the identity.
    least, _, excess = worst_violations("deep-norm", scale=3.0, input_size=2, noise=1.5, num_components=2)
    assert least < -0.1
    assert excess > 0.01


def test_original_mrn_violates_the_triangle_inequality() -> None:
    least, identity, excess = worst_violations("mrn", scale=3.0)
    assert least >= 0
    assert identity <= 1e-12
    assert excess > 0.01


@paper_head
def test_only_metrics_are_symmetric(name: str) -> None:
    head = make_head(name)
    u, v = randn(50, INPUT_SIZE), randn(50, INPUT_SIZE, seed=1)
    symmetric = torch.allclose(head(u, v), head(v, u))
    assert symmetric == (name in METRIC_HEADS)


@paper_head
@pytest.mark.parametrize("alpha", [0.1, 3.0, 100.0])
def test_positive_homogeneity(name: str, alpha: float) -> None:
    head = make_head(name)
    u, v = randn(50, INPUT_SIZE), randn(50, INPUT_SIZE, seed=1)
    homogeneous = torch.allclose(head(alpha * u, alpha * v), alpha * head(u, v), rtol=1e-9)
    assert homogeneous == (name in {"iqe", "iqe-sum", "iqe-maxmean", "euclidean", "l1"})


@pytest.mark.parametrize("name", ["deep-norm", "deep-norm-fixed", "wide-norm"])
def test_norms_without_their_transform_are_homogeneous(name: str) -> None:
    head = make_head(name)
    head.transform = torch.nn.Identity()
    u, v = randn(50, INPUT_SIZE), randn(50, INPUT_SIZE, seed=1)
    torch.testing.assert_close(head(7 * u, 7 * v), 7 * head(u, v))


SHAPES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((), ()),
    ((3,), (3,)),
    ((3, 1), (1, 2)),
    ((2,), ()),
    ((), (4,)),
    ((1, 3), (2, 1, 1)),
    ((0,), ()),
]


@every_head
@settings(max_examples=20)  # there are seven shapes
@given(data=st.data())
def test_broadcasting_equals_one_pair_at_a_time(name: str, data: st.DataObject) -> None:
    left, right = data.draw(st.sampled_from(SHAPES))
    head = make_head(name)
    u, v = randn(*left, INPUT_SIZE), randn(*right, INPUT_SIZE, seed=1)
    d, q = head(u, v), head.components(head.embed(u), head.embed(v))
    shape = torch.broadcast_shapes(left, right)
    assert d.shape == shape
    assert q.shape[:-1] == shape
    flat_u, flat_v = (x.expand(*shape, INPUT_SIZE).reshape(-1, INPUT_SIZE) for x in (u, v))
    single = [head(a, b) for a, b in zip(flat_u, flat_v, strict=True)]
    if single:
        torch.testing.assert_close(d.flatten(), torch.stack(single))


@every_head
def test_distance_is_the_reduced_transformed_components(name: str) -> None:
    head = make_head(name)
    u, v = randn(5, INPUT_SIZE), randn(5, INPUT_SIZE, seed=1)
    components = head.components(head.embed(u), head.embed(v))
    torch.testing.assert_close(head.reduction(head.transform(components)), head(u, v))
    torch.testing.assert_close(head.between(head.embed(u), head.embed(v)), head(u, v))


@every_head
def test_float32_agrees_with_float64(name: str) -> None:
    head = make_head(name)
    u, v = randn(100, INPUT_SIZE), randn(100, INPUT_SIZE, seed=1)
    expected = head(u, v)
    measured = head.float()(u.float(), v.float())
    assert measured.dtype == torch.float32
    torch.testing.assert_close(measured.double(), expected, rtol=2e-4, atol=1e-5)
    with torch.no_grad():
        torch.testing.assert_close(head(u.float(), v.float()).double(), expected, rtol=2e-4, atol=1e-5)


@every_head
def test_values_are_the_same_without_gradients(name: str) -> None:
    """Without gradients, heads may work in place or skip computations."""
    head = make_head(name)
    u, v = randn(50, INPUT_SIZE), randn(50, INPUT_SIZE, seed=1)
    before = u.clone(), v.clone()
    with torch.no_grad():
        plain = head(u, v)
    torch.testing.assert_close(head(u.requires_grad_(), v.requires_grad_()), plain, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close((u, v), before, rtol=0, atol=0)


@every_head
def test_gradients(name: str) -> None:
    head = make_head(name, input_size=8)
    u, v = randn(3, 8).requires_grad_(), randn(3, 8, seed=1).requires_grad_()

    def distance(u: Tensor, v: Tensor, *parameters: Tensor) -> Tensor:
        result: Tensor = torch.func.functional_call(head, dict(zip(names, parameters, strict=True)), (u, v))
        return result

    names = [key for key, _ in head.named_parameters()]
    # Deep linear nets and wide norms have too many parameters for finite differences.
    parameters = list(head.parameters()) if count_parameters(head) < 200 else []
    if parameters:
        assert torch.autograd.gradcheck(distance, (u, v, *parameters))
    else:
        assert torch.autograd.gradcheck(head, (u, v))


@every_head
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("case", ["equal", "zero", "huge", "tiny", "tied", "far apart"])
def test_values_and_gradients_stay_finite(name: str, dtype: torch.dtype, case: str) -> None:
    head = make_head(name).to(dtype)
    u, v = randn(20, INPUT_SIZE), randn(20, INPUT_SIZE, seed=1)
    u, v = {
        "equal": (u, u.clone()),
        "zero": (0 * u, 0 * v),
        "huge": (1e4 * u, 1e4 * v),
        "tiny": (1e-6 * u, 1e-6 * v),
        "tied": (u.round(), v.round()),
        "far apart": (1e-3 * u, 1e3 * v),
    }[case]
    u, v = u.to(dtype).requires_grad_(), v.to(dtype).requires_grad_()
    d = head(u, v)
    d.sum().backward()
    assert d.isfinite().all()
    for tensor in (u, v, *head.parameters()):
        assert tensor.grad is not None
        assert tensor.grad.isfinite().all()
    if case in {"equal", "zero"}:
        assert d.abs().max() <= 1e-6


@pytest.mark.parametrize("name", GUARANTEED)
def test_the_gradient_at_equal_latents_is_exactly_zero(name: str) -> None:
    u = randn(20, INPUT_SIZE).requires_grad_()
    v = u.detach().clone().requires_grad_()
    for gradient in torch.autograd.grad(make_head(name)(u, v).sum(), (u, v)):
        assert (gradient == 0).all()


@every_head
@pytest.mark.parametrize("where", ["u", "v"])
def test_nan_is_never_hidden(name: str, where: str) -> None:
    head = make_head(name)
    for coordinate in range(INPUT_SIZE):
        u, v = randn(4, INPUT_SIZE), randn(4, INPUT_SIZE, seed=1)
        (u if where == "u" else v)[:, coordinate] = float("nan")
        assert head(u, v).isnan().all(), coordinate


@every_head
def test_wrong_shapes_are_refused(name: str) -> None:
    head = make_head(name)
    with pytest.raises(ShapeError, match=r"v has the shape \(2, 15\), .* input_size = 16"):
        head(randn(2, 16), randn(2, 15))
    with pytest.raises(ShapeError, match=r"\(2, 16\) and v \(3, 16\) do not broadcast"):
        head(randn(2, 16), randn(3, 16))
    with pytest.raises(ShapeError, match="u has the shape"):
        head(torch.tensor(1.0), randn(16))


@every_head
def test_repr_is_informative(name: str) -> None:
    head = make_head(name)
    assert "input_size=16" in repr(head)
    assert ("as published" in repr(head)) == (name in {"deep-norm", "mrn"})


@every_head
def test_moves_between_devices(name: str) -> None:
    """No tensor is created on a fixed device: on `meta`, which has shapes only, a CPU tensor would fail."""
    head = make_head(name).to("meta")
    assert head(torch.empty(3, INPUT_SIZE, device="meta"), torch.empty(3, INPUT_SIZE, device="meta")).shape == (3,)
