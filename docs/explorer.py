"""Photograph the explorer: writes the pictures of explorer.md from explorer/example.html. Needs Chromium."""

import io
import shutil
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from qrl.common.files import atomic_write

FOLDER = Path(__file__).parent / "explorer"
EXAMPLE = FOLDER / "example.html"
VIEW = "#goal=15,15&start=2,2"
FROM_START = "#goal=15,9&start=9,9&direction=from&second=asymmetry"


def main() -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        desktop = open_page(browser, 1440, 900, "light", VIEW)
        point_at(desktop, 1, "4,9")
        save("desktop.png", [shoot(desktop)])
        save("dark.png", [shoot(open_page(browser, 1440, 900, "dark", FROM_START))])
        save("phone.png", [shoot(open_page(browser, 390, 844, "dark", VIEW))])
        save("walk.gif", walk(open_page(browser, 1160, 640, "light", "#goal=3,3&start=9,16")))
        browser.close()


def open_page(browser: Browser, width: int, height: int, scheme: Any, fragment: str) -> Page:
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    page.goto(f"{EXAMPLE.as_uri()}{fragment}")
    page.wait_for_selector("body[data-ready]")
    return page


def point_at(page: Page, panel: int, cell: str) -> None:
    """Move the pointer to a cell of a panel's first map."""
    place = (
        "([panel, x, y]) => { const { map } = explorer.drawn[panel].first; return map.place(map.world.stateAt(x, y)) }"
    )
    x, y = page.evaluate(place, [panel, *map(int, cell.split(","))])
    page.mouse.move(x, y)


def click(page: Page, panel: int, cell: str) -> None:
    point_at(page, panel, cell)
    page.mouse.down()
    page.mouse.up()
    page.mouse.move(1, 1)


def shoot(page: Page) -> Image.Image:
    page.wait_for_timeout(100)
    return Image.open(io.BytesIO(page.screenshot())).convert("RGB")


def walk(page: Page) -> list[Image.Image]:
    """Frames: two goals, then a start and the walks from it."""
    frames = [shoot(page)] * 4
    for goal in ("15,3", "15,15"):
        click(page, 0, goal)
        frames += [shoot(page)] * 5
    page.locator("#click-start").check()
    click(page, 0, "2,2")
    page.locator("#play").click()  # pause: the frames step through the walk
    length = int(page.locator("#time").get_attribute("max") or 0)
    for step in range(0, length + 1, 2):
        page.evaluate("step => explorer.player.setTime(step)", step)
        frames.append(shoot(page))
    return frames + frames[-1:] * 8


def save(name: str, frames: list[Image.Image]) -> None:
    options: dict[str, Any] = {"optimize": True}
    if len(frames) > 1:
        frames = [frame.quantize(256, dither=Image.Dither.NONE) for frame in frames]
        options |= {"save_all": True, "append_images": frames[1:], "duration": 250, "loop": 0}
    with atomic_write(FOLDER / name) as file:
        frames[0].save(file, Path(name).suffix.removeprefix("."), **options)


if __name__ == "__main__":
    main()
