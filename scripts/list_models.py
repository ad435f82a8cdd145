"""List the available Q-models, or the parameters of one of them."""

from collections.abc import Sequence
from typing import Any

from qrl.common.commands import command


def _names() -> list[str]:
    from qrl.registry import builtin_names

    return builtin_names()


def _catalog() -> Any:
    from qrl.catalog import describe_model, table_of_models
    from qrl.registry import MODELS
    from qrl.scripts._listing import Catalog

    return Catalog(table_of_models, describe_model, MODELS.failures)


@command
def main(argv: Sequence[str] | None = None) -> None:
    from qrl.scripts._listing import listing_command

    listing_command("list-models", __doc__, "the parameters of this model", _names, _catalog, argv)
