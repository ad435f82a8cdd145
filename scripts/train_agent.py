"""Train a Q-model offline on a dataset, from settings; stop it at any time and resume it exactly."""

import signal
import sys
from collections.abc import Sequence
from typing import Any

from agents.settings import TrainSettings, differences
from qrl.common.commands import add_settings_arguments, command, new_parser
from qrl.common.errors import ConfigError


@command
def main(argv: Sequence[str] | None = None) -> int:
    parser = new_parser("train-agent", __doc__)
    parser.add_argument("--resume", metavar="RUN", help="go on with this run, from its last checkpoint")
    parser.add_argument("--plugin", action="append", default=[], metavar="MODULE", help="import this module first")
    parser.add_argument("--dry-run", action="store_true", help="say what would be trained and how long it would take")
    parser.add_argument("--force", action="store_true", help="delete the run that is in the folder")
    add_settings_arguments(parser, TrainSettings)
    args = parser.parse_intermixed_args(argv)

    # Imported only now, so that --help answers without torch.
    from agents import training
    from qrl.registry import load_plugin

    for module in args.plugin:
        load_plugin(module)
    if args.resume is not None:
        _check_unchanged(args)
        folder, made = training.resume(args.resume)
    else:
        settings = TrainSettings.load(args.config, args.overrides)
        if args.dry_run:
            from agents.dry_run import dry_run

            print(dry_run(settings))
            return 0
        folder, made = training.start(settings, args.force)
    for notice in made.notices:
        print(f"note: {notice}", file=sys.stderr)
    return _run(folder, made)


def _run(folder: Any, made: Any) -> int:
    from tqdm import tqdm

    from agents.training import train

    received: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: received.append(number))
    first, last = made.learner.step, made.learner.num_steps
    print(f"training {made.settings.model.name} in {folder.path}, steps {first} to {last}")
    shown: dict[str, str] = {}
    with tqdm(total=last, initial=first, unit=" steps", disable=None) as bar:
        for row in train(folder, made, stop=lambda: bool(received)):
            shown |= {key: f"{row[key]:.4g}" for key in ("loss", "success_rate") if key in row}
            bar.update(int(row["step"]) - bar.n)
            bar.set_postfix(shown)
    if received and made.learner.step < last:
        print(f"stopped at step {made.learner.step}; go on with: train-agent --resume {folder.path}")
        return 128 + received[0]
    print(f"complete: {folder.path}" + "".join(f", {key} {value}" for key, value in shown.items()))
    return 0


def _check_unchanged(args: Any) -> None:
    """Settings beside --resume must be those of the run."""
    if args.force or args.dry_run:
        raise ConfigError("--resume goes on with a run as it is: leave out --force and --dry-run")
    if args.config is None and not args.overrides:
        return
    from agents.run_folder import RunFolder
    from agents.training import resolve

    saved = RunFolder.existing(args.resume).read_config()
    wanted = TrainSettings.load(args.config, args.overrides)
    given = wanted.model_dump(exclude_unset=True)
    changed = differences(saved, resolve(wanted).model_dump(), given)
    if changed:
        raise ConfigError(
            f"--resume {args.resume} cannot change settings: {'; '.join(changed)}; leave them out, or start a new run"
        )
