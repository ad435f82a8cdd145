"""What mkdocs calls while it builds the site.

Adds pages that are written elsewhere: the README as the home page, the reference from the code, notebooks. Makes links
between files of the repository links between pages, and formulas MathML, so that the site needs no script for them.
"""

import html
import re
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath
from typing import Any

from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from docs.hooks.notebooks import page_of
from docs.hooks.reference import reference_pages

ROOT = Path(__file__).parents[2]
# Pages of the site whose files lie outside of docs/.
OUTSIDE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "examples/plugin/README.md": "plugin-example.md",
}
_SOURCES = {page: source for source, page in OUTSIDE.items()}
_LINK = re.compile(r"(?<=\]\()(?!https?:|mailto:|#)([^)#\s]+)(?=(?:#[^)]*)?\))")
_CODE = re.compile(r"^```.*?^```|``.*?``|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)


def on_config(config: MkDocsConfig) -> None:
    """Replace entries such as tutorials/* of the navigation by the generated pages that they match."""
    notebooks = sorted(path.relative_to(config.docs_dir) for path in Path(config.docs_dir).rglob("*.ipynb"))
    pages = [*reference_pages(), *(path.with_suffix(".md").as_posix() for path in notebooks)]

    def expanded(entry: Any) -> Any:
        if isinstance(entry, dict):
            return {title: expanded(inner) for title, inner in entry.items()}
        if isinstance(entry, list):
            return [expanded(inner) for inner in entry]
        return [page for page in pages if page.startswith(entry[:-1])] if entry.endswith("/*") else entry

    config.nav = expanded(config.nav)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for source, page in OUTSIDE.items():
        _add(files, config, page, (ROOT / source).read_text("utf-8"))
    for page, text in reference_pages().items():
        _add(files, config, page, text)
    for notebook in [file for file in files if file.src_uri.endswith(".ipynb")]:
        text, pictures = page_of(Path(notebook.abs_src_path or ""))
        _add(files, config, notebook.src_uri.replace(".ipynb", ".md"), text)
        for name, picture in pictures.items():
            _add(files, config, str(PurePosixPath(notebook.src_uri).with_name(name)), picture)
    return files


def _add(files: Files, config: MkDocsConfig, uri: str, content: str | bytes) -> None:
    files.append(File.generated(config, uri, content=content))


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links between files of the repository, as GitHub follows them, become links between pages of the site."""
    uri = page.file.src_uri
    if uri == "index.md":
        page.meta["hide"] = ["navigation"]  # it is in the tabs
    source = _SOURCES.get(uri, f"docs/{uri}")

    def page_link(link: re.Match[str]) -> str:
        target = normpath(PurePosixPath(source).parent / link[1])
        if target in OUTSIDE:
            target = OUTSIDE[target]
        elif target.startswith("docs/") and not target.endswith(".py"):
            target = re.sub(r"\.ipynb$", ".md", target.removeprefix("docs/"))
        elif (ROOT / target).is_file():  # such as a config: a copy of it
            target = f"repository/{target}"
            if files.get_file_from_path(target) is None:
                _add(files, config, target, (ROOT / target.removeprefix("repository/")).read_bytes())
        else:
            return link[1]  # strict builds report it
        return relpath(target, PurePosixPath(uri).parent)

    parts, end = [], 0
    for code in _CODE.finditer(markdown):
        parts += [_LINK.sub(page_link, markdown[end : code.start()]), code[0]]
        end = code.end()
    return "".join([*parts, _LINK.sub(page_link, markdown[end:])])


def on_page_content(content: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    return _FORMULA.sub(_mathml, content)


def _mathml(formula: re.Match[str]) -> str:
    block = formula[2] == "["
    mathml = convert(html.unescape(formula[3]), display="block" if block else "inline")
    return f'<div class="formula">{mathml}</div>' if block else mathml
