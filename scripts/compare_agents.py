"""Evaluate training runs on the same data side by side and write one HTML report with tables and pictures.

The results also go into the TensorBoard of each run.
"""

import sys
from collections.abc import Sequence

from qrl.common.commands import command, new_parser
from qrl.common.errors import ConfigError
from qrl.common.files import check_output
from qrl.scripts._planning import add_planning_arguments, prepare


@command
def main(argv: Sequence[str] | None = None) -> None:
    parser = new_parser("compare-agents", __doc__)
    parser.add_argument("out", metavar="REPORT.html", help="file to write")
    parser.add_argument("runs", metavar="RUN", nargs="+", help="folder of a training run, finished or not")
    add_planning_arguments(parser)
    args = parser.parse_args(argv)
    out = check_output(args.out, ".html", args.force)
    prepare(args)

    # Imported only now, so that --help answers without torch.
    from qrl.agents.evaluation.evaluator import Evaluator
    from qrl.agents.evaluation.report import write_report
    from qrl.agents.evaluation.summary import text_table
    from qrl.agents.runs.trained_run import TrainedRun

    runs = [TrainedRun.open(run, seed=args.seed) for run in args.runs]
    first = runs[0].dataset
    if first.layout is None:
        raise ConfigError(f"{args.runs[0]}: its dataset has no layout to draw; score it with evaluate-planning")
    for run in runs:
        if run.dataset.content_hash != first.content_hash:
            raise ConfigError(
                f"{run.folder.path} was trained on other data than {args.runs[0]}; compare like with like"
            )
    if len({run.name for run in runs}) < len(runs):
        raise ConfigError("two of the runs have the same name; rename a folder, so that the table can tell them apart")
    evaluator = Evaluator(first, args.protocol, args.episodes, args.seed)
    evaluator.check_play(goal=args.goal)
    subjects = [evaluator.agent(run.agent, run.name) for run in runs]
    results = [evaluator.score(subject) for subject in [*subjects, *evaluator.references()]]
    for notice in [*(notice for run in runs for notice in run.notices), *evaluator.notices]:
        print(f"note: {notice}", file=sys.stderr)
    print(text_table(results))
    write_report(out, runs, evaluator, subjects, results, args.goal)
    print(f"wrote {out.absolute()}")
    for run, result in zip(runs, results, strict=False):
        run.log(result)
