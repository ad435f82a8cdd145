"""Make an interactive page of training runs in one world: click a goal and see what each model has learned.

The page shows learned and exact distances, their difference, greedy actions and walks. It is one HTML file, which needs
neither a server nor a network. Runs on data without a layout get a table of nearest states.
"""

import sys
from collections.abc import Sequence

from qrl.common.commands import add_plugin_argument, command, new_parser
from qrl.common.completion import completed_by


@command
def main(argv: Sequence[str] | None = None) -> None:
    from qrl.common.files import check_output
    from qrl.scripts._planning import add_seed_argument, check_planning_arguments, run_folders

    parser = new_parser("explore-agents", __doc__)
    parser.add_argument("out", metavar="OUT.html", help="file to write")
    runs = parser.add_argument("runs", metavar="RUN", nargs="+", help="folder of a training run, finished or not")
    completed_by(runs, run_folders)
    parser.add_argument("--checkpoints", action="store_true", help="also show the checkpoints that the runs kept")
    add_seed_argument(parser, "of ties between actions")
    parser.add_argument("--force", action="store_true", help="overwrite an existing file")
    add_plugin_argument(parser, argv)
    args = parser.parse_args(argv)
    out = check_output(args.out, ".html", args.force)
    check_planning_arguments(args)

    # Imported only now, so that --help answers without torch.
    from qrl.agents.evaluation.trained_agent import open_agents
    from qrl.agents.explorer.page import write_explorer

    for notice in write_explorer(out, open_agents(args.runs, args.seed), args.checkpoints, args.seed):
        print(f"note: {notice}", file=sys.stderr)
    print(f"wrote {out.absolute()}: {out.stat().st_size / 1e6:.2f} MB")
