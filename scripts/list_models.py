"""List the available Q-models, or the parameters of one of them."""

import sys
from collections.abc import Sequence

from qrl.common.commands import command, new_parser


@command
def main(argv: Sequence[str] | None = None) -> None:
    parser = new_parser("list-models", __doc__)
    parser.add_argument("name", nargs="?", metavar="NAME", help="show the parameters of this model")
    parser.add_argument("--plugin", action="append", default=[], metavar="MODULE", help="import this module first")
    args = parser.parse_args(argv)

    # Imported late, so that --help does not import torch.
    from qrl.catalog import describe_model, table_of_models
    from qrl.registry import load_plugin, plugin_failures

    for module in args.plugin:
        load_plugin(module)
    print(describe_model(args.name) if args.name else table_of_models())
    for failure in plugin_failures():
        print(f"warning: {failure}", file=sys.stderr)
