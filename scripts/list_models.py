"""List the available Q-models, or the parameters of one of them."""

import sys
from collections.abc import Sequence

from qrl.common.commands import add_plugin_argument, command, new_parser


@command
def main(argv: Sequence[str] | None = None) -> None:
    parser = new_parser("list-models", __doc__)
    parser.add_argument("name", nargs="?", metavar="NAME", help="show the parameters of this model")
    add_plugin_argument(parser, argv)
    args = parser.parse_args(argv)

    # Imported late, so that --help does not import torch.
    from qrl.catalog import describe_model, table_of_models
    from qrl.registry import MODELS

    print(describe_model(args.name) if args.name else table_of_models())
    for failure in MODELS.failures():
        print(f"warning: {failure}", file=sys.stderr)
