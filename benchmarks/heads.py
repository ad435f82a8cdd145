"""Heads: IQE against the textbook sort of all end points, every other head against its plainest torch expression."""

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from benchmarks.measure import milliseconds, table
from benchmarks.naive import textbook_union
from benchmarks.plain_heads import PLAIN
from qrl.heads import IQE, Head
from qrl.q_models import LatentQModel
from qrl.registry import find
from qrl.spec import QModelSpec

LATENT_SIZE = 256
ROUNDS = 41  # some heads take less than a millisecond, in which the machine is noisy
FORWARD_PAIRS, GRADIENT_PAIRS, STATE_ACTIONS = 4096, 1024, 964


def main() -> str:
    return "\n\n".join([_iqe(), _all_pairs(), _others()])


@functools.cache  # where latents lie matters to the fastest heads, so that all read the same ones
def _latents(pairs: int) -> tuple[Tensor, Tensor]:
    torch.manual_seed(0)
    return torch.randn(pairs, LATENT_SIZE), torch.randn(pairs, LATENT_SIZE)


def forward(distance: Callable[[Tensor, Tensor], Tensor]) -> Callable[[], Any]:
    u, v = _latents(FORWARD_PAIRS)

    @torch.no_grad()
    def run() -> Tensor:
        return distance(u, v)

    return run


def with_gradient(distance: Callable[[Tensor, Tensor], Tensor]) -> Callable[[], Any]:
    u, v = (latents.requires_grad_() for latents in _latents(GRADIENT_PAIRS))

    def run() -> Any:
        return torch.autograd.grad(distance(u, v).sum(), (u, v))

    return run


def _forms(dim_per_component: int) -> dict[str, IQE]:
    forms = {name: IQE(LATENT_SIZE, dim_per_component) for name in ("textbook", "eager", "compiled")}
    forms["textbook"].union = textbook_union
    forms["compiled"].accelerate_()
    return forms


def _iqe() -> str:
    rows = []
    for size in (8, 32):
        for title, prepare, pairs in (
            ("forward", forward, FORWARD_PAIRS),
            ("forward + backward", with_gradient, GRADIENT_PAIRS),
        ):
            times = milliseconds({name: prepare(head) for name, head in _forms(size).items()})
            rows.append(
                [
                    f"{title}, {pairs:,} pairs, {LATENT_SIZE // size}x{size}",
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
        "eager is faster by",
        "compiled is faster by",
    ]
    note = (
        "Baseline: `textbook_union` in benchmarks/naive.py, inside the same head. What limits: eager, the sort; "
        "compiled, comparing all intervals with all, so that 32 intervals take longer than 8. The reduction is part of "
        "all."
    )
    return table("IQE", columns, rows, note)


def _all_pairs() -> str:
    torch.manual_seed(0)
    latents = torch.randn(STATE_ACTIONS, LATENT_SIZE)
    rows = []
    for size in (8, 32):
        times = milliseconds(
            {name: _cdist(head, latents) for name, head in _forms(size).items() if name != "textbook"}, rounds=3
        )
        rows.append([f"{LATENT_SIZE // size}x{size}", *(f"{value:.0f}" for value in times.values())])
    return table(
        f"All pairs of {STATE_ACTIONS} latents",
        ["IQE (k x l)", "eager, ms", "compiled, ms"],
        rows,
        "In parts of 16 rows, as the planner does, so that the memory is bounded.",
    )


def _cdist(head: Head, latents: Tensor) -> Callable[[], Any]:
    @torch.no_grad()
    def run() -> Tensor:
        whole = len(latents) // 16 * 16
        return torch.cat([head(part[:, None], latents[None]) for part in latents[:whole].split(16)])

    return run


def _others() -> str:
    rows = []
    for name, plain in PLAIN.items():
        model = find(name).make(QModelSpec(1, 1, 0.95), {"latent_size": LATENT_SIZE, "hidden_sizes": ()})
        assert isinstance(model, LatentQModel)
        head = model.head
        torch.testing.assert_close(head(*_latents(8)), plain(head, *_latents(8)), rtol=1e-3, atol=1e-4)
        naive = functools.partial(plain, head)
        ahead = milliseconds({"plain": forward(naive), "ours": forward(head)}, ROUNDS)
        row = [name, f"{ahead['ours']:.2f}", f"{ahead.faster('ours', 'plain'):.2f}x"]
        if name == "pqe-gg":  # scipy's function has no gradient
            row += [f"{milliseconds({'ours': with_gradient(head)})['ours']:.2f}", "-"]
        else:
            both = milliseconds({"plain": with_gradient(naive), "ours": with_gradient(head)}, ROUNDS)
            row += [f"{both['ours']:.2f}", f"{both.faster('ours', 'plain'):.2f}x"]
        rows.append(row)
    columns = ["head", "forward, ms", "against plain", "forward + backward, ms", "against plain"]
    note = (
        "Baseline: benchmarks/plain_heads.py. Above 1x is faster than plain. What limits: matrix products (Deep Norm, "
        "Wide Norm, MRN), Bessel functions (pqe-gg), memory (the others; below a millisecond also the call of "
        "a module)."
    )
    return table("Other heads", columns, rows, note)
