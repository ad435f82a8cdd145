"""Heads: IQE against the textbook sort of all endpoints, every other head against its plainest torch expression."""

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from benchmarks.measure import keep_freed_memory, milliseconds, table
from benchmarks.plain_heads import PLAIN
from qrl.heads import IQE, Head
from qrl.q_models import LatentQModel
from qrl.registry import find
from qrl.spec import QModelSpec
from tests.agents.learners.naive import textbook_union

LATENT_SIZE = 256
ROUNDS = 41  # heads below a millisecond are noisy
STATES, NUM_ACTIONS = 241, 4  # those of six-rooms
STATE_ACTIONS = STATES * NUM_ACTIONS
FORWARD_PAIRS, GRADIENT_PAIRS = 4096, 1024
PART = 16  # rows of all pairs in one chunk


def main() -> str:
    keep_freed_memory()
    return "\n\n".join([_iqe(), _all_pairs(), _others()])


@functools.cache  # where latents lie in memory matters to the fastest heads: all read the same ones
def _latents(pairs: int) -> tuple[Tensor, Tensor]:
    torch.manual_seed(0)
    return torch.randn(pairs, LATENT_SIZE), torch.randn(pairs, LATENT_SIZE)


def forward(distance: Callable[..., Tensor], *latents: Tensor) -> Callable[[], Any]:
    @torch.no_grad()
    def run() -> Tensor:
        return distance(*latents)

    return run


def with_gradient(distance: Callable[..., Tensor], *latents: Tensor) -> Callable[[], Any]:
    inputs = tuple(latent.detach().requires_grad_() for latent in latents)

    def run() -> Any:
        return torch.autograd.grad(distance(*inputs).sum(), inputs)

    return run


def _model(name: str, **params: int) -> LatentQModel:
    spec = QModelSpec(1, NUM_ACTIONS, 0.95)
    model = find(name).make(spec, {"latent_size": LATENT_SIZE, "hidden_sizes": (), **params})
    assert isinstance(model, LatentQModel)
    return model


def _forms(dim_per_component: int) -> dict[str, LatentQModel]:
    forms = {
        name: _model("iqe-maxmean", dim_per_component=dim_per_component) for name in ("textbook", "eager", "compiled")
    }
    plainest = forms["textbook"].head
    assert isinstance(plainest, IQE)
    plainest.union = textbook_union
    forms["compiled"].accelerate_()
    return forms


def _query(model: LatentQModel, all_actions: bool) -> Callable[[Tensor], Tensor]:
    """D of a batch from the rows of its states, as the learner computes it."""
    torch.manual_seed(0)
    states, goals = torch.randint(STATES, (2, GRADIENT_PAIRS))
    actions, goal_actions = torch.randint(NUM_ACTIONS, (2, GRADIENT_PAIRS))
    return lambda rows: model.discounted_at(rows, states, None if all_actions else actions, goals, goal_actions)


def _iqe() -> str:
    many, few = _latents(FORWARD_PAIRS), _latents(GRADIENT_PAIRS)
    states = many[0][:STATE_ACTIONS].unflatten(0, (STATES, NUM_ACTIONS))
    rows = []
    for size in (8, 32):
        forms = _forms(size)
        cases = {
            f"forward, {FORWARD_PAIRS:,} pairs": {name: forward(form.head, *many) for name, form in forms.items()},
            f"forward + backward, {GRADIENT_PAIRS:,} pairs": {
                name: with_gradient(form.head, *few) for name, form in forms.items()
            },
            f"learner, forward, {FORWARD_PAIRS:,} pairs": {
                name: forward(_query(form, True), states) for name, form in forms.items()
            },
            f"learner, forward + backward, {GRADIENT_PAIRS:,} pairs": {
                name: with_gradient(_query(form, False), states) for name, form in forms.items()
            },
        }
        for title, functions in cases.items():
            times = milliseconds(functions)
            rows.append(
                [
                    f"{title}, {LATENT_SIZE // size}x{size}",
                    *(f"{value:.2f}" for value in times.values()),
                    f"{times.faster('eager', 'textbook'):.1f}x",
                    f"{times.faster('compiled', 'textbook'):.1f}x",
                ]
            )
    columns = [
        "IQE (k x l)",
        "textbook, ms",
        "eager, ms",
        "compiled, ms",
        "speedup, eager",
        "speedup, compiled",
    ]
    note = (
        "Baseline: `textbook_union` in tests/agents/learners/naive.py, inside the same head. All include the "
        'reduction. "learner": as in a training step, for its targets and its loss, including selecting the latents '
        f"of {STATES} states and discounting. The bottleneck is the sort (eager), or comparing all intervals with each "
        "other (compiled), so that 32 intervals take longer than 8; with a gradient, also torch's own functions around "
        "it. From here on the process keeps freed memory: page faults would dominate the short rows."
    )
    return table("IQE", columns, rows, note)


def _all_pairs() -> str:
    rows = []
    for size in (8, 32):
        times = milliseconds(
            {name: all_pairs(form.head) for name, form in _forms(size).items() if name != "textbook"}, rounds=3
        )
        rows.append([f"{LATENT_SIZE // size}x{size}", *(f"{value:.0f}" for value in times.values())])
    note = f"In chunks of {PART} rows, as in the planner, which bounds the memory: see below."
    return table(f"All pairs of {STATE_ACTIONS} latents", ["IQE (k x l)", "eager, ms", "compiled, ms"], rows, note)


def all_pairs(head: Head) -> Callable[[], Any]:
    torch.manual_seed(0)
    latents = torch.randn(STATE_ACTIONS, LATENT_SIZE)

    @torch.no_grad()
    def run() -> Tensor:
        distances = torch.empty(STATE_ACTIONS, STATE_ACTIONS)
        for first in range(0, STATE_ACTIONS, PART):
            # The last chunk overlaps the one before, so that all have the same shape.
            part = slice(min(first, STATE_ACTIONS - PART), first + PART)
            distances[part] = head(latents[part, None], latents[None])
        return distances

    return run


def _others() -> str:
    rows = []
    few, many = _latents(GRADIENT_PAIRS), _latents(FORWARD_PAIRS)
    for name, plain in PLAIN.items():
        head = _model(name).head
        naive = functools.partial(plain, head)
        _check_equal(with_gradient(head, *_latents(8))(), with_gradient(naive, *_latents(8))())
        _check_equal(head(*_latents(8)), naive(*_latents(8)))
        ahead = milliseconds({"plain": forward(naive, *many), "ours": forward(head, *many)}, ROUNDS)
        both = milliseconds({"plain": with_gradient(naive, *few), "ours": with_gradient(head, *few)}, ROUNDS)
        row = [name]
        for times in (ahead, both):
            row += [f"{times['ours']:.2f}", f"{times.faster('ours', 'plain'):.2f}x"]
        rows.append(row)
    columns = ["head", "forward, ms", "speedup over plain", "forward + backward, ms", "speedup over plain"]
    note = (
        "Baseline: benchmarks/plain_heads.py. Above 1x is faster than plain. Bottlenecks: matrix products (Deep Norm, "
        "Wide Norm, MRN), Bessel functions (pqe-gg), memory (the others; below a millisecond also the overhead of "
        "calling a module)."
    )
    return table("Other heads", columns, rows, note)


def _check_equal(ours: Any, theirs: Any) -> None:
    torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)
