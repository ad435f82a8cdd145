"""Arguments that the commands for planning share. Nothing here imports torch."""

from argparse import ArgumentTypeError, Namespace
from collections.abc import Iterable, Sequence
from typing import get_args

from qrl.agents.evaluation.results import ProtocolName
from qrl.common.commands import Parser, add_plugin_argument
from qrl.common.completion import paths
from qrl.common.errors import ConfigError


def add_planning_arguments(parser: Parser, argv: Sequence[str] | None) -> None:
    add = parser.add_argument
    add("--protocol", choices=get_args(ProtocolName), help="sampled tasks in the environment, or all tasks (default)")
    add("--episodes", type=int, metavar="N", help="number of sampled tasks (default: 50)")
    add_seed_argument(parser, "of sampled tasks, ties and random actions")
    add("--goal", type=grid_cell, metavar="X,Y", help="goal cell of maps and GIFs (default: of median distance)")
    add("--force", action="store_true", help="overwrite outputs that exist")
    add_plugin_argument(parser, argv)


def run_folders(prefix: str) -> Iterable[str]:
    """Folders of training runs, for completion."""
    from qrl.agents.runs.folder import CONFIG

    return paths(prefix, lambda path: (path / CONFIG).is_file())


def add_seed_argument(parser: Parser, meaning: str) -> None:
    parser.add_argument("--seed", type=int, default=0, metavar="S", help=f"{meaning} (default: 0)")


def grid_cell(text: str) -> tuple[int, int]:
    try:
        x, y = map(int, text.split(","))
    except ValueError:
        raise ArgumentTypeError(f"invalid cell {text!r}: expected X,Y, such as 3,4") from None
    return x, y


def check_planning_arguments(args: Namespace) -> None:
    """Check what argparse cannot."""
    if args.seed < 0:
        raise ConfigError(f"--seed must be at least 0 (got {args.seed})")
