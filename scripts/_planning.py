"""Arguments that the commands for planning share. Nothing here imports torch."""

from argparse import ArgumentParser, Namespace
from typing import get_args

from qrl.agents.evaluation.results import Protocol
from qrl.common.errors import ConfigError


def add_planning_arguments(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("--protocol", choices=get_args(Protocol), help="sampled tasks in the real environment, or all tasks (default)")
    add("--episodes", type=int, metavar="N", help="number of sampled tasks (default: 50)")
    add("--seed", type=int, default=0, metavar="S", help="of sampled tasks, ties and random actions (default: 0)")
    add("--goal", type=cell, metavar="X,Y", help="goal cell of maps and GIFs (default: of middling distance)")
    add("--force", action="store_true", help="overwrite outputs that exist")
    add("--plugin", action="append", default=[], metavar="MODULE", help="import this module first")


def cell(text: str) -> tuple[int, int]:
    x, y = text.split(",")
    return int(x), int(y)


def prepare(args: Namespace) -> None:
    """Check what argparse cannot, and load plugins."""
    if args.seed < 0:
        raise ConfigError(f"--seed must be at least 0 (got {args.seed})")
    from qrl.registry import load_plugin

    for module in args.plugin:
        load_plugin(module)
