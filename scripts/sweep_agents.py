"""Train and evaluate every run of a study: models x hyperparameters x dataset sizes x seeds.

Finished runs are skipped: stop a sweep at any time and start it again with the same command.
report-sweep draws the results.
"""

import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from qrl.common.commands import (
    Parser,
    add_override_arguments,
    add_plugin_argument,
    check_interrupted,
    command,
    complete_config,
    new_parser,
)

if TYPE_CHECKING:
    from qrl.agents.studies.folder import StudyFolder
    from qrl.agents.studies.study import Study
    from qrl.agents.studies.table import RunRow


def _parser(argv: Sequence[str] | None) -> Parser:
    from qrl.agents.studies.settings import StudySettings

    parser = new_parser("sweep-agents", __doc__)
    add = parser.add_argument
    study = add("study", metavar="STUDY", help="YAML file of a study, or the name of a built-in one, such as smoke")
    complete_config(study, StudySettings)
    add(
        "--jobs",
        type=int,
        metavar="N",
        help="parallel runs, each with cores / N threads, which affects rounding (default: number of cores)",
    )
    add(
        "--backend",
        choices=["loky", "ray"],
        default="loky",
        help="processes of this machine, or a Ray cluster (default: loky)",
    )
    add("--ray-address", metavar="A", help="HOST:PORT of the cluster (default: the one on this machine)")
    add(
        "--from",
        dest="source",
        type=Path,
        metavar="FOLDER",
        help="do not compute the finished runs in this folder's study.yaml, results.csv and curves.csv again",
    )
    add("--dry-run", action="store_true", help="show what would be computed and about how long training would take")
    add_plugin_argument(parser, argv)
    add_override_arguments(parser, StudySettings)
    return parser


@command
def main(argv: Sequence[str] | None = None) -> int:
    args = _parser(argv).parse_intermixed_args(argv)

    from qrl.agents.studies.study import Study
    from qrl.common.errors import ConfigError

    if args.jobs is not None and args.jobs < 1:
        raise ConfigError(f"--jobs must be at least 1 (got {args.jobs})")
    if args.ray_address is not None and args.backend != "ray":
        raise ConfigError("--ray-address applies only to --backend ray")
    study = Study.load(args.study, args.overrides)

    # Imported only now, so that --help answers without torch.
    from qrl.agents.studies.backends import BACKENDS
    from qrl.agents.studies.folder import StudyFolder
    from qrl.agents.studies.selection import expected
    from qrl.agents.studies.sweep import check_models, check_sweep, sweep
    from qrl.agents.studies.table import gather

    check_models(study)
    folder = StudyFolder(study.settings.out or Path("runs") / study.name)
    source = None if args.source is None else StudyFolder(args.source)
    check_sweep(study, folder, source)
    rows = gather(folder, study, source)
    if args.dry_run:
        _dry_run(study, folder, rows, args.jobs)
        return 0
    check_interrupted()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # stop as for Ctrl-C
    try:
        with BACKENDS[args.backend](args.jobs, args.ray_address) as backend:
            size = f"{len(expected(study, rows))} runs in {folder.path}, jobs {backend.jobs}, threads {backend.threads}"
            print(f"{study.name}: {size}", flush=True)
            failed = sweep(study, folder, backend, tuple(args.plugin), source)
    except KeyboardInterrupt:
        print(f"stopped; the same command resumes {folder.path}", file=sys.stderr)
        return 130
    print(f"{f'{failed} runs failed' if failed else 'complete'}; draw the results with: report-sweep {folder.path}")
    return 1 if failed else 0


def _dry_run(study: "Study", folder: "StudyFolder", rows: "list[RunRow]", jobs: int | None) -> None:
    from joblib import cpu_count

    from qrl.agents.studies.backends import split_cores
    from qrl.agents.studies.estimate import estimate_lines
    from qrl.agents.studies.selection import expected
    from qrl.agents.studies.table import summary

    runs = {run.name: run for run in expected(study, rows)}
    print(summary(study, [row for row in rows if row.run in runs]), flush=True)
    complete = {row.run for row in rows if row.status == "complete"}
    todo = {
        family: [run for name, run in runs.items() if run.family == family and name not in complete]
        for family in study.settings.families
    }
    for line in estimate_lines(study, folder, todo, *split_cores(cpu_count(), jobs)):
        print(line, flush=True)
