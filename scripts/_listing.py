"""What the commands that list a registry share."""

import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from qrl.common.commands import add_plugin_argument, new_parser
from qrl.common.completion import completed_by


class Catalog(NamedTuple):
    """The contents of a registry as text."""

    table: Callable[[], str]
    describe: Callable[[str], str]
    failures: Callable[[], list[str]]  # of installed plugins


def listing_command(
    name: str,
    description: str | None,
    shown: str,
    names: Callable[[], list[str]],
    load: Callable[[], Any],
    argv: Sequence[str] | None,
) -> None:
    """`shown`: what is shown of one entry. `names`: for completion.

    `load` gives the `Catalog`: late, so that --help does not import torch.
    """
    parser = new_parser(name, description)
    entry = parser.add_argument("name", nargs="?", metavar="NAME", help=f"show {shown}")
    completed_by(entry, lambda _: names())
    add_plugin_argument(parser, argv)
    args = parser.parse_args(argv)
    catalog: Catalog = load()
    print(catalog.describe(args.name) if args.name else catalog.table())
    for failure in catalog.failures():
        print(f"warning: {failure}", file=sys.stderr)
