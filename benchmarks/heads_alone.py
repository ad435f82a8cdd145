"""IQE as part of a user's own model: eager and through torch.compile, against torchqmet where that is installed.

    python -m benchmarks.heads_alone

prints the table of docs/heads-alone.md.
"""

import importlib.util
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

from benchmarks.heads import FORWARD_PAIRS, GRADIENT_PAIRS, LATENT_SIZE, forward, with_gradient
from benchmarks.measure import keep_freed_memory, milliseconds, table
from qrl.heads import IQE
from tests.agents.learners.naive import textbook_union

SIZES = (8, 16, 32)


class _OwnModel(nn.Module):
    """What a user writes: any module that contains a head."""

    def __init__(self, head: nn.Module) -> None:
        super().__init__()
        self.head = head

    def forward(self, u: Tensor, v: Tensor) -> Tensor:
        distances: Tensor = self.head(u, v)
        return distances


def _forms(dim_per_component: int) -> dict[str, Callable[..., Tensor]]:
    """The baseline comes first."""
    forms: dict[str, Callable[..., Tensor]] = {}
    if importlib.util.find_spec("torchqmet"):
        import torchqmet

        forms["torchqmet"] = torchqmet.IQE(LATENT_SIZE, dim_per_component)
    textbook = IQE(LATENT_SIZE, dim_per_component)
    textbook.union = textbook_union
    forms["textbook"] = textbook
    forms["eager"] = IQE(LATENT_SIZE, dim_per_component)
    forms["torch.compile"] = torch.compile(_OwnModel(IQE(LATENT_SIZE, dim_per_component)), fullgraph=True)
    return forms


def _latents(pairs: int) -> tuple[Tensor, Tensor]:
    torch.manual_seed(0)
    return torch.randn(pairs, LATENT_SIZE), torch.randn(pairs, LATENT_SIZE)


def main() -> str:
    keep_freed_memory()
    torch.set_num_threads(1)
    rows = []
    for size in SIZES:
        for title, timed, pairs in (
            ("forward", forward, FORWARD_PAIRS),
            ("forward + backward", with_gradient, GRADIENT_PAIRS),
        ):
            latents = _latents(pairs)
            functions = {name: timed(form, *latents) for name, form in _forms(size).items()}
            times = milliseconds(functions, clock=time.process_time)
            baseline, *others = times
            ratios = [f"{times.faster(name, baseline):.1f}x" for name in others]
            rows.append([f"{title}, {pairs:,} pairs, {LATENT_SIZE // size}x{size}", f"{times[baseline]:.1f}", *ratios])
    columns = ["IQE (k x l)", f"{baseline}, ms", *(f"{name}, speedup" for name in others)]
    note = f"CPU time of one thread and speedups over {baseline}, float32, torch {torch.__version__}."
    return table("Heads alone", columns, rows, note)


if __name__ == "__main__":
    print(main())
