"""Measure every head against the axioms and plot it along a line: writes heads.md and heads.png beside this file."""

from pathlib import Path
from typing import Any, NamedTuple

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from qrl.agents.evaluation.style import COLORS
from qrl.catalog import count_parameters
from qrl.common.figures import save_figure
from qrl.common.files import atomic_write
from qrl.heads import Head
from qrl.heads.transforms import Concave
from qrl.q_models import LatentQModel
from qrl.registry import find, list_q_models
from qrl.spec import QModelSpec

FOLDER = Path(__file__).parent
SPEC = QModelSpec(observation_dim=1, num_actions=1, discount=0.95)
ROUNDS, POINTS = 25, 17  # 122,825 triples in each of two searches
NARROW: dict[str, dict[str, Any]] = {"deep-norm": {"num_components": 2}, "deep-norm-fixed": {"num_components": 2}}


class Measured(NamedTuple):
    least: float
    identity: float
    triangle: float
    homogeneity: float


def make_head(name: str, latent_size: int, **params: Any) -> Head:
    model = find(name).make(SPEC, {"latent_size": latent_size, "hidden_sizes": (), **params})
    assert isinstance(model, LatentQModel)
    return model.head.double()


def disturbed(head: Head, noise: float) -> Head:
    """Perturb the parameters away from their initialization, within their constraints."""
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.add_(noise * torch.randn_like(parameter))
        for module in head.modules():
            project = getattr(module, "project_", None)
            if project is not None:
                project()
    return head


def measure(name: str) -> Measured:
    """The worst case over random parameters and latents: wide heads near initialization, narrow ones far from it."""
    torch.manual_seed(0)
    results = []
    for _ in range(ROUNDS):
        results.append(_measure_one(disturbed(make_head(name, 16), 0.3)))
        narrow = {"dim_per_component": 1} if "dim_per_component" in find(name).parameters.model_fields else {}
        results.append(_measure_one(disturbed(make_head(name, 2, **narrow, **NARROW.get(name, {})), 1.5)))
    columns = list(zip(*results, strict=True))
    return Measured(min(columns[0]), *(max(column) for column in columns[1:]))


@torch.no_grad()
def _measure_one(head: Head) -> Measured:
    z = 3 * torch.randn(POINTS, head.input_size, dtype=torch.float64)
    d = head(z[:, None], z[None])
    largest = d.abs().max()
    excess = (d[:, None] - d[:, :, None] - d[None]).max() / largest
    tripled = head(3 * z[:, None], 3 * z[None])
    return Measured(
        d.min().item(),
        d.diagonal().abs().max().item(),
        max(excess.item(), 0.0),
        ((tripled - 3 * d).abs().max() / largest).item(),
    )


def table() -> str:
    lines = [
        "| head | quasimetric | least d | largest d(x, x) | triangle excess | homogeneity error | parameters |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name in head_names():
        worst = measure(name)
        promise = "guaranteed" if make_head(name, 16).guaranteed_quasimetric else "**no**"
        lines.append(
            f"| {name} | {promise} | {worst.least:.2g} | {worst.identity:.2g} | {worst.triangle:.2g} "
            f"| {worst.homogeneity:.2g} | {count_parameters(make_head(name, 256)):,} |"
        )
    return "\n".join(lines)


def head_names() -> list[str]:
    return [name for name in list_q_models() if find(name).is_head]


def draw(path: Path) -> None:
    """One panel per head: distances and components from u to u + t w, with random but fixed u and w."""
    names = head_names()
    figure = Figure(figsize=(11, 9), layout="constrained")
    panels: list[Axes] = list(figure.subplots(4, 4).flat)
    for axis, name in zip(panels, names, strict=False):
        torch.manual_seed(1)
        head = make_head(name, 64)
        if isinstance(head.transform, Concave):  # as in the paper's figure: a visible transform
            torch.nn.init.normal_(head.transform.raw_slopes)
            torch.nn.init.normal_(head.transform.raw_offsets)
        u, w = torch.randn(2, 64, dtype=torch.float64)
        _draw_head(axis, head, u, w)
        count = count_parameters(make_head(name, 256))
        axis.set_title(f"{name} ({count:,} parameter{'s' * (count != 1)})", fontsize=9)
    for axis in panels[len(names) :]:
        axis.set_axis_off()
    handles, labels = panels[0].get_legend_handles_labels()
    panels[len(names)].legend(handles, labels, loc="upper left", frameon=False, fontsize=11)
    figure.supxlabel("t, the separation of the two latents")
    figure.supylabel("distance; components (grey) relative to the largest")
    save_figure(figure, path)


@torch.no_grad()
def _draw_head(axis: Axes, head: Head, u: Tensor, w: Tensor) -> None:
    t = torch.linspace(0, 10, 200, dtype=torch.float64)
    v = u + t[:, None] * w
    there, back, components = head(u, v), head(v, u), head.transform(head.components(u, v))
    # Components are scaled to the panel: their curvature matters, not their number.
    scaled = components / components.max() * max(there.max().item(), back.max().item())
    for index, curve in enumerate(scaled.T[:32]):
        axis.plot(t, curve, color="0.7", lw=0.7, label="components" if index == 0 else None)
    axis.plot(t, there, color=COLORS[2], lw=2, label="d(u, u + t w)")
    axis.plot(t, back, color=COLORS[0], lw=2, ls="--", label="d(u + t w, u)")


TEXT = """# Heads: measured properties

Generated by `make docs` (`docs/heads.py`); do not edit.

Each row shows the worst case over {triples:,} random triples of latents with random parameters: wide heads near their
initialization and narrow heads far from it. The triangle excess is the largest d(x, z) - d(x, y) - d(y, z), and the
homogeneity error the largest |d(3u, 3v) - 3 d(u, v)|, both relative to the largest distance; values of 1e-14 and below
are rounding. Parameters are those of the head alone at latent size 256.

{table}

The original Deep Norm and the original MRN are kept as published, flaws included. That IQE, Deep Norm and Wide Norm can
represent every finite quasimetric exactly is tested in `tests/qrl/heads/test_universality.py`.

![Distances and components of every head as two latents move apart](heads.png)

All heads are shown at initialization with latent size 64; the concave transforms of Deep Norm and Wide Norm are made
strong enough to be visible. PQE's components saturate at 1, where their gradient vanishes; IQE's become straight lines.
"""


def main() -> None:
    draw(FOLDER / "heads.png")
    text = TEXT.format(triples=2 * ROUNDS * POINTS**3, table=table())
    with atomic_write(FOLDER / "heads.md") as file:
        file.write(text.encode())
    print(text)


if __name__ == "__main__":
    main()
