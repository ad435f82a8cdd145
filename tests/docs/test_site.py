"""The documentation site, built strictly: links, the reference, formulas, and nothing loaded from elsewhere."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

import qrl
from docs.hooks.commands import parser_of
from docs.hooks.notebooks import page_of
from docs.hooks.tables import as_markdown, escape
from qrl.__main__ import commands
from qrl.agents.learners.registry import find_settings, list_learners
from qrl.envs.worlds.registry import list_worlds
from qrl.registry import list_q_models
from tests.docs.blocks import PAGES, ROOT

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]  # quiet is not strict
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    run = subprocess.run(build, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return folder


class Html(HTMLParser):
    """The ids of a page, its links, and what a browser loads with it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {key: value for key, value in attrs if value is not None}
        self.ids |= {values[key] for key in ("id", "name") if key in values}
        if tag == "a":
            self.links += [values["href"]] if "href" in values else []
        else:
            self.loaded += [values[key] for key in ("src", "href") if key in values]


@cache
def parsed(path: Path) -> Html:
    return Html(path.read_text("utf-8"))


def html_pages(site: Path) -> list[Path]:
    return [path for path in site.rglob("*.html") if path.parent.name != "explorer"]  # the example, a page of its own


def test_every_link_leads_somewhere(site: Path) -> None:
    checked = 0
    for page in html_pages(site):
        for link in (*parsed(page).links, *parsed(page).loaded):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or page.name == "404.html":  # whose links are relative to the host
                continue
            target = page if not parts.path else (page.parent / unquote(parts.path)).resolve()
            target = target / "index.html" if target.is_dir() else target
            assert target.is_file(), f"{page.relative_to(site)}: {link}"
            if parts.fragment and target.suffix == ".html" and target in html_pages(site):
                assert unquote(parts.fragment) in parsed(target).ids, f"{page.relative_to(site)}: {link}"
            checked += 1
    assert checked > 1000


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for page in html_pages(site):
        assert not [link for link in parsed(page).loaded if urlsplit(link).netloc], page
    for style in site.rglob("*.css"):
        assert not re.findall(r"url\(['\"]?(?:https?:)?//|@import", style.read_text("utf-8")), style


def test_links_work_on_github_too() -> None:
    for page in PAGES:
        text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
        for link in re.findall(r"\]\((?!https?://|#)([^)#\s]+)", text):
            assert (page.parent / link).exists(), f"{page}: {link}"


def test_the_readme_fits_on_a_few_screens() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120


def test_the_reference_has_every_command_with_its_keys(site: Path) -> None:
    for command in commands():
        text = (site / "reference" / "commands" / f"{command}.html").read_text()
        parser, _ = parser_of(command)
        options = [option for action in parser._actions for option in action.option_strings if option.startswith("--")]
        keys = parser.settings.leaves() if parser.settings is not None else {}
        for name in {*options, *keys} - {"--help", "--version"}:
            assert f"<code>{name}" in text, f"{command}: {name}"


def test_the_reference_has_every_registered_name(site: Path) -> None:
    for kind, names in {"learners": list_learners(), "models": list_q_models(), "worlds": list_worlds()}.items():
        page = site / "reference" / "names" / f"{kind}.html"
        for name in names:
            assert name in parsed(page).ids or f"<code>{name}</code>" in page.read_text(), name
    learners = (site / "reference" / "names" / "learners.html").read_text()
    for name in list_learners():
        for key in find_settings(name).leaves():
            assert key == "name" or f"<code>learner.{key}</code>" in learners


def test_the_reference_has_every_public_name(site: Path) -> None:
    ids = parsed(site / "reference" / "python" / "qrl.html").ids
    for name in qrl.__all__:
        assert name == "__version__" or any(anchor.endswith(f".{name}") for anchor in ids), name


def test_formulas_are_mathml(site: Path) -> None:
    formulas = 0
    for page in html_pages(site):
        text = page.read_text("utf-8")
        assert "arithmatex" not in text, page
        for formula in re.findall(r"<math.*?</math>", text, re.DOTALL):
            assert "\\" not in formula, f"{page}: {formula}"  # a command of TeX that was not understood
            formulas += 1
    assert formulas > 50


def test_plain_text_stays_plain() -> None:
    assert escape("a_b * c | `d_e` < 1") == r"a\_b \* c \| `d_e` &lt; 1"
    assert as_markdown("q_i\n\n    x_i * 2\n\nend_") == "q\\_i\n\n    x_i * 2\n\nend\\_"


def test_notebooks_are_pages(tmp_path: Path) -> None:
    png = "iVBORw0KGgo="
    cells: list[dict[str, Any]] = [
        {"cell_type": "markdown", "source": ["# Title\n", "text"]},
        {
            "cell_type": "code",
            "source": "print(1)",
            "outputs": [
                {"output_type": "stream", "text": ["\x1b[31m1\x1b[0m\n"]},
                {"output_type": "display_data", "data": {"image/png": png, "text/plain": "<Figure>"}},
                {"output_type": "execute_result", "data": {"text/plain": "2"}},
            ],
        },
        {"cell_type": "code", "source": "", "outputs": []},
    ]
    (tmp_path / "first.ipynb").write_text(json.dumps({"cells": cells}))
    text, pictures = page_of(tmp_path / "first.ipynb")
    assert text == (
        "# Title\ntext\n\n```python\nprint(1)\n```\n\n```text\n1\n```\n\n"
        "![Output of the cell above](first-1.png)\n\n```text\n2\n```\n"
    )
    assert pictures == {"first-1.png": b"\x89PNG\r\n\x1a\n"}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="not installed: pip install -e '.[browser]'")
    if CHROMIUM is None:
        pytest.skip("there is no Chromium on the path: apt-get install chromium")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


def test_pages_open_from_disk(site: Path, browser: Any) -> None:
    failed: list[str] = []

    def opened(name: str, query: str = "") -> Any:
        page = browser.new_page()  # one each: leaving a page would abort its requests, such as that of the icon
        page.on("requestfailed", lambda request: failed.append(request.url))
        page.on("request", lambda request: failed.append(request.url) if not request.url.startswith("file:") else None)
        page.on("pageerror", lambda error: failed.append(str(error)))
        page.goto((site / name).as_uri() + query)
        return page

    search = opened("reference/commands/train-agent.html", "?q=quasimetric")
    search.locator(".md-search-result__item").first.wait_for()
    page = opened("learners.html")
    assert failed == []
    height = "formula => formula.getBoundingClientRect().height"
    assert page.locator("math[display=block]").first.evaluate(height) > 30  # drawn as a formula, not as a line of text
