"""List the available learners, or the objective and the keys of one of them."""

from collections.abc import Sequence
from typing import Any

from qrl.common.commands import command


def _names() -> list[str]:
    from qrl.agents.learners.registry import builtin_learners

    return builtin_learners()


def _catalog() -> Any:
    from qrl.agents.learners.catalog import describe_learner, table_of_learners
    from qrl.agents.learners.registry import LEARNERS
    from qrl.scripts._listing import Catalog

    return Catalog(table_of_learners, describe_learner, LEARNERS.failures)


@command
def main(argv: Sequence[str] | None = None) -> None:
    from qrl.scripts._listing import listing_command

    listing_command("list-learners", __doc__, "the objective and the keys of this learner", _names, _catalog, argv)
