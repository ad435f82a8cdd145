"""Train and evaluate every run of a study: models x hyperparameters x dataset sizes x seeds.

Finished runs are skipped: stop a sweep at any moment and start it again with the same command.
report-sweep draws the results.
"""

import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from qrl.common.commands import add_override_arguments, add_plugin_argument, command, new_parser


@command
def main(argv: Sequence[str] | None = None) -> int:
    from qrl.agents.studies.study import Study, StudySettings
    from qrl.common.errors import ConfigError

    parser = new_parser("sweep-agents", __doc__)
    add = parser.add_argument
    add("study", metavar="STUDY", help="YAML file of a study, or the name of a built-in one, such as studies/smoke")
    add(
        "--jobs",
        type=int,
        metavar="N",
        help="runs at a time; each has cores / jobs threads, which changes rounding (default: cores)",
    )
    add("--backend", choices=["loky", "ray"], default="loky", help="processes here, or a Ray cluster (default: loky)")
    add("--ray-address", metavar="A", help="HOST:PORT of the cluster (default: the one on this machine)")
    add("--dry-run", action="store_true", help="say what would be computed")
    add_plugin_argument(parser, argv)
    add_override_arguments(parser, StudySettings)
    args = parser.parse_intermixed_args(argv)
    if args.jobs is not None and args.jobs < 1:
        raise ConfigError(f"--jobs must be at least 1 (got {args.jobs})")
    if args.ray_address is not None and args.backend != "ray":
        raise ConfigError("--ray-address is that of a Ray cluster: add --backend ray")
    study = Study.load(args.study, args.overrides)

    # Imported only now, so that --help answers without torch.
    from qrl.agents.studies.backends import BACKENDS
    from qrl.agents.studies.folder import StudyFolder
    from qrl.agents.studies.sweep import check_models, sweep
    from qrl.agents.studies.table import gather, summary

    check_models(study)
    folder = StudyFolder(study.settings.out or Path("runs") / study.name)
    folder.check(study)
    if args.dry_run:
        print(summary(study, gather(folder, study)))
        return 0
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # stop as for Ctrl-C
    backend = BACKENDS[args.backend](args.jobs, args.ray_address)
    try:
        print(f"{study.name}: {len(study.runs)} runs in {folder.path}, jobs {backend.jobs}, threads {backend.threads}")
        failed = sweep(study, folder, backend, tuple(args.plugin))
    except KeyboardInterrupt:
        print(f"stopped; the same command resumes {folder.path}", file=sys.stderr)
        return 130
    finally:
        backend.close()
    print(f"{f'{failed} runs failed' if failed else 'complete'}; draw the results with: report-sweep {folder.path}")
    return 1 if failed else 0
