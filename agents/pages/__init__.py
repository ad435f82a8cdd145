"""HTML pages from templates: self-contained files, which load nothing and send nothing."""

from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined

_FOLDERS = ("pages", "explorer", "evaluation")  # of templates, in qrl.agents


@cache
def _environment() -> Environment:
    return Environment(
        loader=FunctionLoader(_source), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )


def _source(name: str) -> str | None:
    files = (resources.files("qrl.agents").joinpath(folder, name) for folder in _FOLDERS)
    return next((file.read_text("utf-8") for file in files if file.is_file()), None)


def render(template: str, **values: Any) -> str:
    """A page; every value is escaped unless the template says otherwise."""
    return _environment().get_template(template).render(values)
