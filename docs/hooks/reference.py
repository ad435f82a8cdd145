"""The pages of the reference, from the code: parsers, settings, registries, metrics, configs and public names."""

import argparse
import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib import import_module, resources
from typing import Any

import qrl
from docs.hooks.commands import parser_of
from docs.hooks.tables import as_markdown, escape, keys_table, table
from qrl.__main__ import commands
from qrl.agents.evaluation.metrics import METRICS, RESERVED
from qrl.agents.learners.registry import find_learner, list_learners
from qrl.common.config_files import CONFIG_COMMANDS
from qrl.envs.worlds.registry import find_world, list_worlds
from qrl.registry import find, list_q_models

# Keys whose value decides which other keys there are, by the page that lists those.
CHOICES = {"learners": "learner.name", "models": "model.name", "worlds": "world"}

# Modules with public names beside those of `qrl` itself: a page each, with these members, or with all that it exports.
MODULES: dict[str, Sequence[str]] = {
    "qrl.heads": (),
    "qrl.q_models": (),
    "qrl.testing": ("check_q_model", "check_learner", "check_world"),
    "qrl.envs.dataset": ("Dataset",),
    "qrl.envs.collector": ("CollectorSettings", "collect"),
    "qrl.envs.minari_exchange": ("to_minari", "from_minari"),
    "qrl.envs.ogbench_exchange": ("to_ogbench", "from_ogbench"),
    "qrl.agents.planning.agent": ("Agent",),
    "qrl.agents.learners.base": ("Learner", "Loss", "encode_distinct", "discounted", "make_target", "PolyakAverage"),
    "qrl.agents.learners.goal_sampler": ("Batch", "GoalSampler"),
    "qrl.agents.evaluation.evaluator": ("Evaluator",),
    "qrl.agents.evaluation.results": ("Results", "Evaluation"),
    "qrl.agents.evaluation.measurements": ("Measurements", "Tasks", "Estimates"),
}


@cache
def reference_pages() -> dict[str, str]:
    """The Markdown of every page, by its place in the site."""
    public = [name for name in qrl.__all__ if not name.startswith("_")]
    pages = {"reference/python/qrl.md": _members("qrl", sorted(public, key=lambda name: name[0].isupper()))}
    for module, members in MODULES.items():
        pages[f"reference/python/{module}.md"] = _members(module, members or _exported(module))
    for command in commands():
        pages[f"reference/commands/{command}.md"] = _command_page(command)
    pages["reference/names/learners.md"] = _registered(
        "Learners",
        "`train-agent learner.name=NAME learner.KEY=VALUE`; `train-graph` for `regression`.",
        "learner.",
        list_learners(),
        find_learner,
    )
    pages["reference/names/models.md"] = _models()
    pages["reference/names/worlds.md"] = _registered(
        "Worlds", "`collect-dataset OUT.npz world=NAME world.KEY=VALUE`.", "world.", list_worlds(), find_world
    )
    pages["reference/names/metrics.md"] = _metrics()
    pages["reference/names/configs.md"] = _configs()
    return pages


def _exported(module: str) -> Sequence[str]:
    names: Sequence[str] = import_module(module).__all__
    return names


def _members(module: str, names: Iterable[str]) -> str:
    return "\n\n".join([f"# {module}", *(f"::: {module}.{name}" for name in names)]) + "\n"


def _command_page(command: str) -> str:
    parser, _ = parser_of(command)
    usage = argparse.ArgumentParser.format_usage(parser).removeprefix("usage: ")
    rows = [
        (f"`{_invocation(action)}`", escape(action.help or ""))
        for action in parser._actions
        if not {"-h", "--version"} & set(action.option_strings)
    ]
    parts = [
        f"# {command}",
        parser.description or "",
        f"```text\n{usage.rstrip()}\n```",
        "## Arguments",
        table(("argument", "meaning"), rows),
    ]
    if parser.settings is not None:
        leaves = parser.settings.leaves()
        chosen = [kind for kind, key in CHOICES.items() if any(f".{leaf}".endswith(f".{key}") for leaf in leaves)]
        lists = ", ".join(f"[{kind}](../names/{kind}.md)" for kind in (*chosen, "configs"))
        parts += ["## Keys", keys_table(parser.settings), f"By name, with keys or values of their own: {lists}."]
    return "\n\n".join(filter(None, parts)) + "\n"


def _invocation(action: argparse.Action) -> str:
    if not action.option_strings:
        return str(action.metavar or action.dest)
    if action.nargs == 0:
        return ", ".join(action.option_strings)
    value = action.metavar or ("{" + ",".join(map(str, action.choices)) + "}" if action.choices else action.dest)
    return f"{', '.join(action.option_strings)} {value}"


def _registered(title: str, usage: str, prefix: str, names: Iterable[str], lookup: Callable[[str], Any]) -> str:
    """Built-in learners or worlds: what each is, and its keys."""
    parts = [f"# {title}", usage]
    for name in names:
        entry = lookup(name)
        if entry.origin == "qrl":
            parts += [f"## {name}", as_markdown(entry.meaning), keys_table(entry.settings, prefix, ["name"])]
    return "\n\n".join(parts) + "\n"


def _models() -> str:
    parts = ["# Models", "`train-agent model.name=NAME model.params.KEY=VALUE`."]
    aliases = []
    for name in list_q_models():
        model = find(name)
        if model.origin != "qrl":
            continue
        if model.alias_of is not None:
            fixed = ", ".join(f"`{key}={value}`" for key, value in model.fixed.items())
            aliases.append((f"`{name}`", f"[{model.alias_of}](#{model.alias_of})", fixed))
        else:
            parts += [f"## {name}", as_markdown(inspect.getdoc(model.cls) or ""), keys_table(model.parameters)]
    return "\n\n".join([*parts, "## Aliases", table(("name", "model", "fixes"), aliases)]) + "\n"


def _metrics() -> str:
    better = {True: "higher", False: "lower", None: ""}
    rows = [
        (
            f"`{metric.key}`",
            escape(metric.help),
            better[metric.higher_is_better],
            f"`{metric.column}`" if metric.column else "",
        )
        for metric in METRICS
    ]
    others = [(f"`{key}`", escape(meaning)) for key, meaning in RESERVED.items()]
    parts = [
        "# Metrics",
        "The keys of `evaluate-planning --json FILE`; `column` is the name in `metrics.csv`, in TensorBoard and in the "
        "tables of a study.",
        table(("key", "meaning", "better", "column"), rows),
        "## Other keys of the JSON",
        table(("key", "meaning"), others),
    ]
    return "\n\n".join(parts) + "\n"


def _configs() -> str:
    parts = ["# Built-in configs", "`COMMAND --config NAME`; for studies, `sweep-agents NAME`."]
    for folder, command in CONFIG_COMMANDS.items():
        parts.append(f"## {command}")
        for file in sorted(resources.files("qrl.configs").joinpath(folder).iterdir(), key=lambda file: file.name):
            name = file.name.removesuffix(".yaml")
            parts.append(f"### {name}\n\n```yaml\n{file.read_text('utf-8').rstrip()}\n```")
    return "\n\n".join(parts) + "\n"
