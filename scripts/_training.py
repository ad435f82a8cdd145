"""What the commands that train share. Nothing here imports torch at the top, so that --help answers without it."""

import signal
import sys
import time
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

from qrl.common.commands import Parser, add_plugin_argument, add_settings_arguments, check_interrupted, new_parser
from qrl.common.completion import completed_by
from qrl.common.config_files import merge
from qrl.common.errors import ConfigError

if TYPE_CHECKING:
    from qrl.agents.runs.problems import Problem
    from qrl.agents.runs.run import Run

STOPPING = "stopping after this step (and any compilation in progress), with a checkpoint; Ctrl-C again stops at once"


def training_command(problem: "Problem", description: str | None, argv: Sequence[str] | None) -> int:
    """Start or resume a run of the problem's command, and train it to its end."""
    args = _parser(problem, description, argv).parse_intermixed_args(argv)
    from qrl.agents.runs.run import Run

    if args.resume is not None:
        run = Run.resume(args.resume, _changes(problem, args), problem.command)
    else:
        settings = problem.settings_type.load(args.config, args.overrides)
        if args.dry_run:
            from qrl.agents.runs.dry_run import dry_run

            print(dry_run(Run.prepare(settings, init=args.init)))
            return 0
        check_interrupted()
        run = Run.start(settings, force=args.force, init=args.init)
    for notice in run.notices:
        print(f"note: {notice}", file=sys.stderr)
    return _train(run)


def _parser(problem: "Problem", description: str | None, argv: Sequence[str] | None) -> Parser:
    from qrl.agents.evaluation.metric import columns, help_lines
    from qrl.scripts._planning import run_folders

    parser = new_parser(problem.command, description)
    add = parser.add_argument
    resume = add(
        "--resume",
        metavar="RUN",
        help="continue this run from its last checkpoint; with dataset=FILE where its data has moved, and with larger "
        "learner.epochs or learner.min_steps to extend it: the learning rate then follows the longer cosine",
    )
    init = add("--init", metavar="RUN", help="start from the weights and the observation scaling of this run")
    for action in (resume, init):
        completed_by(action, run_folders)
    add("--dry-run", action="store_true", help="show what would be trained and how long it would take")
    add("--force", action="store_true", help="delete the run that is in the folder")
    add_plugin_argument(parser, argv)
    add_settings_arguments(parser, problem.settings_type, argv)
    scored = {name: metric for name, metric in columns(problem.metrics).items() if metric.in_training}
    measured = "measured every evaluate_every steps, in metrics.csv and the trackers"
    parser.epilog = f"{parser.epilog}\n\n{measured}:\n{help_lines(scored)}"
    return parser


def _changes(problem: "Problem", args: Namespace) -> dict[str, Any]:
    """The settings given beside --resume."""
    if args.force or args.dry_run or args.init is not None:
        raise ConfigError("--resume cannot be combined with --force, --dry-run or --init")
    if args.config is None and not args.overrides:
        return {}
    from qrl.agents.runs.model import resolve
    from qrl.agents.runs.run import Run

    learner = Run.open(args.resume, problem.command).settings.learner.name  # whose keys may be named without it
    values = merge({"learner": {"name": learner}}, problem.settings_type.read(args.config, args.overrides))
    settings = problem.settings_type.from_values(values, args.config or "settings")
    return _chosen(resolve(settings).model_dump(), settings.model_dump(exclude_unset=True))


def _chosen(values: dict[str, Any], keys: dict[str, Any]) -> dict[str, Any]:
    """Those of the nested `values` whose keys occur in `keys`."""
    return {
        key: _chosen(values[key], inner) if isinstance(inner, dict) and isinstance(values[key], dict) else values[key]
        for key, inner in keys.items()
    }


def _train(run: "Run") -> int:
    from qrl.common.progress import Progress

    learner = run.trainer.learner
    first, last = learner.steps_done, learner.num_steps
    print(f"training {run.settings.model.name} by {learner.name} in {run.path}, steps {first} to {last}", flush=True)
    if run.settings.compile == "on" and first < last:
        print("kernels are compiled on first use: seconds if cached, otherwise up to a minute", flush=True)
    check_interrupted()
    began = time.perf_counter()
    shown: dict[str, str] = {}
    scores: dict[str, float] = {}
    keys = ("loss", *run.problem.scored(run.settings, run.dataset)[:1])
    with _stop_signals() as received, Progress(last, first, "steps") as progress:
        for row in run.train(stop=lambda: bool(received)):
            shown |= {key: f"{row[key]:.4g}" for key in keys if key in row}
            scores |= row
            progress.update(int(row["step"]), shown)
            progress.tick()
    if received and learner.steps_done < last:
        print(f"stopped at step {learner.steps_done}; continue with: {run.problem.command} --resume {run.path}")
        return 128 + received[0]
    results = "".join(f", {key} {value}" for key, value in shown.items())
    print(f"complete: {run.path}{results} ({time.perf_counter() - began:.0f} s)")
    for remark in run.problem.remarks(run.settings.model.name, scores, run.dataset, run.settings.seed):
        print(f"note: {remark}", file=sys.stderr)
    return 0


@contextmanager
def _stop_signals() -> Iterator[list[int]]:
    """Collect SIGINT and SIGTERM, to stop after the current step; a second SIGINT interrupts at once."""
    received: list[int] = []

    def receive(number: int, _: FrameType | None) -> None:
        if received and number == signal.SIGINT:
            raise KeyboardInterrupt
        received.append(number)
        print(f"\n{STOPPING}", file=sys.stderr, flush=True)

    before = {number: signal.signal(number, receive) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
