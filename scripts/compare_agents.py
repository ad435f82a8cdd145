"""Evaluate training runs on the same data side by side and write one HTML report with tables and pictures.

The results also go into the TensorBoard or other trackers of each run. Runs on data without a world are compared on the
trajectories that they hold out.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from qrl.common.commands import command, new_parser
from qrl.common.completion import completed_by
from qrl.common.errors import ConfigError


@command
def main(argv: Sequence[str] | None = None) -> None:
    from qrl.common.files import check_output
    from qrl.scripts._planning import add_planning_arguments, check_planning_arguments, run_folders

    parser = new_parser("compare-agents", __doc__)
    parser.add_argument("out", metavar="REPORT.html", help="file to write")
    runs = parser.add_argument("runs", metavar="RUN", nargs="+", help="folder of a training run, finished or not")
    completed_by(runs, run_folders)
    parser.add_argument("--explorer", metavar="FILE", help="page of explore-agents to link to")
    add_planning_arguments(parser, argv)
    args = parser.parse_args(argv)
    out = check_output(args.out, ".html", args.force)
    check_planning_arguments(args)
    if args.explorer is not None and not Path(args.explorer).is_file():
        raise ConfigError(f"--explorer: {args.explorer} does not exist; make it with explore-agents first")

    # Imported only now, so that --help answers without torch.
    from qrl.agents.evaluation.evaluator import Evaluator
    from qrl.agents.evaluation.notices import chance_notices
    from qrl.agents.evaluation.report import write_report
    from qrl.agents.evaluation.single_task import check_play, task_states
    from qrl.agents.evaluation.tables import text_table
    from qrl.agents.evaluation.trained_agent import open_agents

    agents = open_agents(args.runs, args.seed)
    dataset = agents[0].dataset
    for trained in agents:
        if trained.dataset.content_hash != dataset.content_hash:
            raise ConfigError(
                f"{trained.run.path} was trained on other data than {args.runs[0]}; compare runs on the same data"
            )
    evaluator = Evaluator(dataset, args.protocol, args.episodes, args.seed)
    if evaluator.truth is not None:
        task_states(evaluator, goal=args.goal)
    elif args.goal is not None:
        check_play(evaluator, goal=args.goal)
    subjects = [trained.subject(evaluator) for trained in agents]
    evaluations = [
        trained.evaluate(evaluator, subject, references=False)
        for trained, subject in zip(agents, subjects, strict=True)
    ]
    references = [evaluator.score(reference) for reference in evaluator.references()]
    results = [evaluation.results for evaluation in evaluations]
    notices = list(dict.fromkeys(notice for evaluation in evaluations for notice in evaluation.notices))
    random = next((result.success_rate for result in references if result.name == "random"), None)
    for result in results:
        notices += chance_notices(result.name, result.success_rate, random)
    results += references
    if len({trained.held_out and trained.held_out.num_episodes for trained in agents}) > 1:
        notices.append("the runs hold out different trajectories: metrics of these do not compare")
    for notice in notices:
        print(f"note: {notice}", file=sys.stderr)
    print(text_table(results))
    write_report(out, agents, evaluator, subjects, results, notices, args.goal, args.explorer)
    print(f"wrote {out.absolute()}")
    for trained, evaluation in zip(agents, evaluations, strict=True):
        trained.log(evaluation.results)
