"""An episode as a GIF: its frames with the trail so far, the number of steps and the estimated steps to the goal."""

from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from qrl.agents.planning.rollouts import Episode
from qrl.common.files import atomic_write

CAPTION = 44  # pixels below each frame, for two lines
_MIN_WIDTH = 230  # pixels, enough for the caption
_TRAIL, _OUTLINE = (255, 90, 220), (20, 20, 20)


def save_gif(episode: Episode, path: str | Path, milliseconds: int = 150) -> None:
    """The episode as an endless GIF; a loop is shown until it closes, not up to the cap."""
    steps = range(min(_closed(episode), len(episode.frames)))
    # One palette for all frames, so that colours do not flicker.
    first, *others = (_frame(episode, step, last=step == steps[-1]) for step in steps)
    palette = first.quantize(64)
    images = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in (first, *others)]
    pauses = [milliseconds] * len(others) + [10 * milliseconds]
    with atomic_write(path) as file:
        images[0].save(file, "GIF", save_all=True, append_images=images[1:], duration=pauses, loop=0)


def _frame(episode: Episode, step: int, last: bool) -> Image.Image:
    frame = Image.fromarray(episode.frames[step])
    canvas = Image.new("RGB", (max(frame.width, _MIN_WIDTH), frame.height + CAPTION), "white")
    draw = ImageDraw.Draw(frame)
    _draw_trail(draw, [(x * frame.width, y * frame.height) for x, y in episode.trail[: step + 1]])
    canvas.paste(frame, ((canvas.width - frame.width) // 2, 0))
    draw, font = ImageDraw.Draw(canvas), ImageFont.load_default(14)
    for line, text in enumerate(caption(episode, step, last)):
        draw.text((8, frame.height + 4 + 18 * line), text, "black", font)
    return canvas


def _draw_trail(draw: ImageDraw.ImageDraw, points: list[tuple[float, float]]) -> None:
    """A line with a dark outline, legible on every floor, from a dot at the start."""
    for color, extra in ((_OUTLINE, 2), (_TRAIL, 0)):
        if len(points) > 1:
            draw.line(points, color, 2 + extra, joint="curve")
        for x, y in points[:1]:
            reach = 3 + extra / 2
            draw.ellipse((x - reach, y - reach, x + reach, y + reach), color)


def caption(episode: Episode, step: int, last: bool) -> tuple[str, str]:
    """The step, with the outcome below the last frame, and the estimate, where there is one."""
    outcome = "" if not last else ": goal reached" if episode.success else f": failed ({episode.cause})"
    estimate = episode.estimates[step] if episode.estimates else np.nan
    return f"step {step}{outcome}", f"estimated steps to the goal: {estimate:.1f}" if np.isfinite(estimate) else ""


def _closed(episode: Episode) -> int:
    """Frames up to a few steps after the first return to a state, if the episode never leaves the loop."""
    if episode.cause in {"loop", "blocked"}:
        seen: set[bytes] = set()
        for step, row in enumerate(episode.observations):
            if row.tobytes() in seen and row.tobytes() == episode.observations[-1].tobytes():
                return step + 5
            seen.add(row.tobytes())
    return len(episode.frames)
