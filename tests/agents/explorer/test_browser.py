"""The page in a real browser: what it shows is what the agent says and what the planner does."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import qrl
from qrl.agents.evaluation.trained_agent import TrainedAgent, open_agents
from qrl.agents.explorer.page import write_explorer
from qrl.agents.planning.planner import TablePolicy
from qrl.agents.runs.run import Run
from qrl.envs.dataset import Dataset
from qrl.envs.ground_truth import GroundTruth, ground_truth
from qrl.envs.layout import load_layout
from tests.agents.explorer.pages import circle, hall, noisy_page
from tests.agents.worlds import small_settings, without_layout

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install -e '.[browser]'")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on the path: apt-get install chromium")

MINUS = "\N{MINUS SIGN}"
TRUTH = ground_truth(load_layout("traps"))


@pytest.fixture(scope="module")
def runs(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The trained run, and a shorter one that kept its checkpoints."""
    path = tmp_path_factory.mktemp("runs") / "kept"
    often = {"checkpoint_every": 20, "checkpoint_keep": 1}
    learner = {"min_steps": 60, "lr": 1e-2}
    dataset = str(trained / "dataset.npz")
    for _ in Run.start(small_settings(path, dataset=dataset, learner=learner, **often)).train():
        pass
    return [trained, path]


@pytest.fixture(scope="module")
def page_file(runs: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "explorer.html"
    write_explorer(path, open_agents(runs), checkpoints=True)
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


class Opened:
    """A page in the browser, and everything that it complained about."""

    def __init__(self, browser: Any, path: Path, fragment: str = "", script: str = "", **options: Any) -> None:
        self.complaints: list[str] = []
        self.page = browser.new_page(**{"viewport": {"width": 1400, "height": 900}, **options})
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self._note_request(request.url))
        if script:
            self.page.add_init_script(script)
        self.page.goto(f"{path.as_uri()}{fragment}")
        self.page.wait_for_selector("body[data-ready], #message:not([hidden])", state="attached")

    def _note_request(self, url: str) -> None:
        if not url.startswith("file:"):
            self.complaints.append(f"request of {url}")

    def point(self, state: int, panel: int = 0) -> tuple[float, float]:
        """The middle of a state's cell on the first map of a panel, in the window."""
        self.page.locator(".panel").nth(panel).scroll_into_view_if_needed()
        x, y = self.page.evaluate("([p, s]) => explorer.drawn[p].first.map.place(s)", [panel, state])
        return x, y

    def numbers(self, where: str = "#tip") -> dict[str, list[str]]:
        """The rows of a table of steps, by title: a text per planner."""
        rows = self.page.evaluate(
            "where => [...document.querySelectorAll(`${where} tbody tr`)].map(r => [...r.cells].map(c => c.innerText))",
            where,
        )
        return {title: [text.replace(MINUS, "-") for text in values] for title, *values in rows}

    def open(self, fragment: str) -> None:
        self.page.evaluate("fragment => { window.location.hash = fragment }", fragment)
        self.page.wait_for_function("fragment => explorer.view.fragment() === fragment", arg=fragment)


@pytest.fixture
def opened(browser: Any, page_file: Path) -> Iterator[Opened]:
    page = Opened(browser, page_file)
    yield page
    page.page.close()
    assert page.complaints == []


def link(start: int, goal: int, truth: GroundTruth = TRUTH, **more: Any) -> str:
    cells = truth.layout.cells
    parts = {"goal": ",".join(map(str, cells[goal])), "start": ",".join(map(str, cells[start])), **more}
    return "&".join(f"{key}={value}" for key, value in parts.items())


def test_a_click_on_a_goal_shows_the_numbers_of_the_agent(opened: Opened, runs: list[Path]) -> None:
    agents = [qrl.load(run) for run in runs]
    rows = TRUTH.layout.observations
    tables = [agent.all_steps_to_goal(rows) for agent in agents]
    rng = np.random.default_rng(0)
    states = len(rows)
    goal = int(rng.integers(states))
    opened.page.mouse.click(*opened.point(goal, 1))
    for state in rng.choice(np.setdiff1d(np.arange(states), goal), 12, replace=False).tolist():
        opened.page.mouse.move(*opened.point(state, 2))
        shown = opened.numbers()
        assert shown == opened.numbers("#cell")
        steps = np.array([agent.steps_to_goal(rows[state], rows[goal]) for agent in agents])
        exact = TRUTH.distances[TRUTH.transitions[state], goal]
        for action, name in enumerate(("up", "right", "down", "left")):
            truth, *learned = shown[f"after {name}"]
            assert truth == (f"{exact[action]:.0f}" if np.isfinite(exact[action]) else "∞")
            # A query of its own may differ in the last bits from the table of all pairs.
            np.testing.assert_allclose(np.array(learned, float), steps[:, action], atol=0.005 + 1e-4)
            assert learned == [f"{table[state, goal, action]:.2f}" for table in tables]
        greedy = opened.page.evaluate(
            "() => [...document.querySelectorAll('#cell .taken')].map(c => [c.cellIndex, c.parentNode.rowIndex])"
        )
        actions = {column - 2: row - 3 for column, row in greedy if column > 1}
        assert actions == {run: agent.act(rows[state], rows[goal]) for run, agent in enumerate(agents)}


def test_walks_end_as_those_of_the_planner(opened: Opened, runs: list[Path]) -> None:
    rng = np.random.default_rng(1)
    rows = TRUTH.layout.observations
    starts, goals = np.transpose([rng.choice(len(rows), 2, replace=False) for _ in range(50)])
    ends = []
    for run in runs:
        policy = TablePolicy.greedy(qrl.load(run).all_steps_to_goal(rows), rows, seed=0)
        ends.append(policy.walk(TRUTH, starts, goals))
    for task, (start, goal) in enumerate(zip(starts, goals, strict=True)):
        opened.open(link(start, goal))
        items = opened.page.evaluate(
            "() => [...document.querySelectorAll('#walks li')].map(item => ({ ...item.dataset }))"
        )
        assert [(item["cause"], int(item["steps"])) for item in items[1:]] == [
            (outcome.cause[task], outcome.steps[task]) for outcome in ends
        ]
    causes = {cause for outcome in ends for cause in outcome.cause}
    assert causes >= {"", "blocked", "loop"}, "the tasks are too easy to test anything"


def test_the_symbols_agree_with_the_walks(opened: Opened, runs: list[Path]) -> None:
    """States whose walk reaches the goal are those drawn as reaching it, and of a loop only members are inside it."""
    rows = TRUTH.layout.observations
    goal = int(TRUTH.layout.goals[3])
    reachable = np.isfinite(TRUTH.distances[:, goal]) & (np.arange(len(rows)) != goal)
    opened.open(link(0, goal))
    for panel, run in enumerate(runs, 1):
        policy = TablePolicy.greedy(qrl.load(run).all_steps_to_goal(rows), rows, seed=0)
        outcome = policy.walk(TRUTH, np.arange(len(rows)), np.full(len(rows), goal))
        fates = np.array(opened.page.evaluate("panel => explorer.drawn[panel].fates", panel))
        assert (np.isin(fates, ["optimal", "detour"]) == (outcome.success & reachable)).all()
        action = policy.table[:, goal]
        following = TRUTH.transitions[np.arange(len(rows)), action]
        assert ((fates == "blocked") == (reachable & (following == np.arange(len(rows))))).all()
        on_path = TRUTH.distances[following, goal] + 1 == TRUTH.distances[:, goal]
        good = outcome.success & reachable
        assert ((fates == "optimal")[good] == on_path[good]).all()


def test_deep_links_restore_the_view(browser: Any, page_file: Path) -> None:
    fragment = link(5, 40, run="kept", direction="from", second="asymmetry", scale="own", step=40)
    opened = Opened(browser, page_file, f"#{fragment.replace('scale=own&', '')}")
    page = opened.page
    assert page.locator(".panel:visible h2").all_inner_texts() == ["ground truth", "kept"]
    assert page.locator("#direction-from").is_checked()
    assert page.locator("#click-start").is_checked()
    assert page.locator("#second").input_value() == "asymmetry"
    assert page.locator("#step-text").inner_text() == "40 steps"
    assert "After 40 training steps" in page.locator(".panel:visible .note").nth(1).inner_text()
    page.locator("#scale").select_option("own")
    page.mouse.click(*opened.point(7))  # a start, as distances from it are shown
    assert (
        page.evaluate("location.hash")
        == f"#{link(7, 40, run='kept', direction='from', scale='own', second='asymmetry', step=40)}"
    )
    page.reload()
    page.wait_for_selector("body[data-ready]")
    assert page.locator("#scale").input_value() == "own"
    assert page.locator("#start-text").inner_text() == f"({', '.join(map(str, TRUTH.layout.cells[7]))})"
    wrong = Opened(browser, page_file, "#goal=0,0&run=nobody&start=x")
    assert (
        "3 things that this page does not have: goal=0,0, run=nobody, start=x"
        in wrong.page.locator("#message").inner_text()
    )
    assert opened.complaints == wrong.complaints == []


def test_keyboard_and_playing(opened: Opened) -> None:
    page = opened.page
    start, goal = (int(ids[0]) for ids in (TRUTH.layout.starts, TRUTH.layout.goals))
    opened.open(link(start, goal))
    page.locator(".panel canvas[tabindex]").first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("g")
    right = page.evaluate("explorer.view.goal")
    assert TRUTH.layout.cells[right].tolist() == (TRUTH.layout.cells[goal] + (1, 0)).tolist()
    page.keyboard.press("s")
    assert "Start and goal are the same cell" in page.locator("#walks").inner_text()
    opened.open(link(start, goal))
    length = int(page.locator("#time").get_attribute("max"))
    assert page.locator("#time-text").inner_text() == f"step {length} of {length}"
    page.keyboard.press(",")
    assert page.locator("#time-text").inner_text() == f"step {length - 1} of {length}"
    page.keyboard.press("d")
    assert page.locator("#direction-from").is_checked()
    page.keyboard.press("x")
    assert (page.evaluate("explorer.view.start"), page.evaluate("explorer.view.goal")) == (goal, start)
    page.locator("#speed").select_option("30")
    page.keyboard.press("d")
    page.locator("#play").click()
    assert page.locator("#play").inner_text() == "Pause"
    page.wait_for_function("() => document.getElementById('play').textContent === 'Play'")  # at the end of the walk


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone(browser: Any, page_file: Path, scheme: str) -> None:
    opened = Opened(browser, page_file, viewport={"width": 390, "height": 844}, has_touch=True, color_scheme=scheme)
    page = opened.page
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate("document.documentElement.dataset.theme") == scheme
    page.touchscreen.tap(*opened.point(9))
    assert page.evaluate("explorer.view.goal") == 9
    assert page.locator("#play").is_visible()
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.locator("#theme").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != background
    assert opened.complaints == []


def test_a_browser_that_is_too_old(browser: Any, page_file: Path) -> None:
    opened = Opened(browser, page_file, script="delete window.DecompressionStream")
    assert "This browser cannot decompress the data of the page" in opened.page.locator("#message").inner_text()
    assert opened.complaints == []


def test_a_world_without_cells(browser: Any, trained: Path, tmp_path: Path) -> None:
    agent = TrainedAgent.open(trained)
    data = without_layout(Dataset.load(trained / "dataset.npz"))
    unknown = replace(agent, dataset=data, notices=[])
    notices = write_explorer(tmp_path / "table.html", [unknown])
    assert notices == ["the dataset has no world: there is no map, no exact distance and no walk, only tables"]
    opened = Opened(browser, tmp_path / "table.html", "#goal=3&start=1")
    rows = opened.page.locator(".nearest tbody tr")
    steps = agent.agent.all_steps_to_goal(data.observations)
    distances = steps.min(-1)[:, 3] + 1
    nearest = np.argsort(np.where(np.arange(len(distances)) == 3, np.inf, distances.round(2)), kind="stable")
    text = rows.first.locator("td").all_inner_texts()
    assert text[0] == str(nearest[0])
    assert text[1].startswith(f"{distances[nearest[0]]:.2f} (")
    rows.first.locator("button").click()
    assert opened.page.evaluate("explorer.view.goal") == nearest[0]
    assert opened.complaints == []


def test_a_map_without_a_layout(browser: Any, tmp_path: Path) -> None:
    """Arrows point to where actions lead; a walk is followed around the circle."""
    noisy_page(tmp_path / "circle.html", circle())
    opened = Opened(browser, tmp_path / "circle.html", "#goal=0,2&start=0,0")
    assert opened.page.evaluate("explorer.page.world.direction(2, 0)") == [0, 1]
    assert opened.page.evaluate("explorer.page.world.direction(2, 1)") == [0, 0]
    assert "Reaches the goal in 6 steps: a shortest path" in opened.page.locator("body").inner_text()
    assert opened.complaints == []


def test_how_long_a_click_takes(browser: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Printed, not asserted: machines differ."""
    for layout in (load_layout("six-rooms"), hall(45)):
        path = tmp_path / f"{layout.name}.html"
        noisy_page(path, layout)
        opened = Opened(browser, path)
        times = []
        for state in opened.page.evaluate("explorer.page.world.goals.slice(0, 8)"):
            x, y = opened.point(state, 1)
            clicked = (
                "([x, y]) => new Promise(done => { const target = explorer.drawn[1].first.map.upper;"
                "const begin = performance.now();"
                "target.dispatchEvent(new PointerEvent('click', { clientX: x, clientY: y, bubbles: true }));"
                "requestAnimationFrame(() => setTimeout(() => done(performance.now() - begin))) })"
            )
            times.append(opened.page.evaluate(clicked, [x, y]))
            assert opened.page.evaluate("explorer.view.goal") == state
        with capsys.disabled():
            size = path.stat().st_size / 1e6
            print(
                f"\nexplorer: {layout.name}, {len(layout.cells)} states, {size:.2f} MB: a click redraws in "
                f"{np.median(times):.0f} ms (median; {min(times):.0f} to {max(times):.0f} ms)"
            )
        assert opened.complaints == []
