"""List the available learners, or the objective and the keys of one of them."""

import sys
from collections.abc import Sequence

from qrl.common.commands import add_plugin_argument, command, new_parser


@command
def main(argv: Sequence[str] | None = None) -> None:
    parser = new_parser("list-learners", __doc__)
    parser.add_argument("name", nargs="?", metavar="NAME", help="show the objective and the keys of this learner")
    add_plugin_argument(parser, argv)
    args = parser.parse_args(argv)

    # Imported late, so that --help does not import torch.
    from qrl.agents.learners.catalog import describe_learner, table_of_learners
    from qrl.agents.learners.registry import LEARNERS

    print(describe_learner(args.name) if args.name else table_of_learners())
    for failure in LEARNERS.failures():
        print(f"warning: {failure}", file=sys.stderr)
