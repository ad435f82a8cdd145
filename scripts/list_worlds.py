"""List the available worlds, or the keys of one of them."""

from collections.abc import Sequence
from typing import Any

from qrl.common.commands import command


def _names() -> list[str]:
    from qrl.envs.worlds.registry import builtin_worlds

    return builtin_worlds()


def _catalog() -> Any:
    from qrl.envs.worlds.catalog import describe_world, table_of_worlds
    from qrl.envs.worlds.registry import WORLDS
    from qrl.scripts._listing import Catalog

    return Catalog(table_of_worlds, describe_world, WORLDS.failures)


@command
def main(argv: Sequence[str] | None = None) -> None:
    from qrl.scripts._listing import listing_command

    listing_command("list-worlds", __doc__, "the keys of this world", _names, _catalog, argv)
