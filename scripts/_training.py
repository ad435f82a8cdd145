"""What the commands that train share. Nothing here imports torch at the top, so that --help answers without it."""

import signal
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from qrl.agents.runs.settings import RunSettings, differences
from qrl.common.commands import add_settings_arguments, new_parser
from qrl.common.errors import ConfigError

if TYPE_CHECKING:
    from qrl.agents.runs.run_folder import RunFolder
    from qrl.agents.runs.training_run import Training


def training_command(
    name: str, description: str | None, settings: type[RunSettings], kind: str, argv: Sequence[str] | None
) -> int:
    """Train what `kind`, a class given as module:name, makes of the settings."""
    args = _parser(name, description, settings).parse_intermixed_args(argv)

    from qrl.registry import load_plugin

    for module in args.plugin:
        load_plugin(module)
    module, _, attribute = kind.partition(":")
    training: type[Training] = getattr(import_module(module), attribute)
    if args.resume is not None:
        _check_unchanged(args, settings)
        folder, made = training.resume(args.resume)
    else:
        wanted = settings.load(args.config, args.overrides)
        if args.dry_run:
            from qrl.agents.runs.dry_run import dry_run

            print(dry_run(training.prepare(wanted)))
            return 0
        folder, made = training.start(wanted, args.force)
    for notice in made.notices:
        print(f"note: {notice}", file=sys.stderr)
    return _run(name, folder, made)


def _parser(name: str, description: str | None, settings: type[RunSettings]) -> ArgumentParser:
    parser = new_parser(name, description)
    parser.add_argument("--resume", metavar="RUN", help="go on with this run, from its last checkpoint")
    parser.add_argument("--plugin", action="append", default=[], metavar="MODULE", help="import this module first")
    parser.add_argument("--dry-run", action="store_true", help="say what would be trained and how long it would take")
    parser.add_argument("--force", action="store_true", help="delete the run that is in the folder")
    add_settings_arguments(parser, settings)
    measured = "\n".join(f"  {name:<24} {meaning}" for name, meaning in settings.EVALUATED.items())
    parser.epilog = (
        f"{parser.epilog}\n\nmeasured every evaluate_every steps, in metrics.csv and TensorBoard:\n{measured}"
    )
    return parser


def _run(command: str, folder: "RunFolder", made: "Training") -> int:
    from tqdm import tqdm

    from qrl.agents.runs.training_run import train

    received: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: received.append(number))
    first, last = made.learner.step, made.learner.num_steps
    print(f"training {made.settings.model.name} in {folder.path}, steps {first} to {last}")
    if made.settings.compile == "on" and first < last:
        print("kernels are compiled at their first use: in seconds where they are cached, else in up to a minute")
    shown: dict[str, str] = {}
    with tqdm(total=last, initial=first, unit=" steps", disable=None) as bar:
        for row in train(folder, made, stop=lambda: bool(received)):
            shown |= {key: f"{row[key]:.4g}" for key in ("loss", *made.evaluated[:1]) if key in row}
            bar.update(int(row["step"]) - bar.n)
            bar.set_postfix(shown)
    if received and made.learner.step < last:
        print(f"stopped at step {made.learner.step}; go on with: {command} --resume {folder.path}")
        return 128 + received[0]
    print(f"complete: {folder.path}" + "".join(f", {key} {value}" for key, value in shown.items()))
    return 0


def _check_unchanged(args: Namespace, settings: type[RunSettings]) -> None:
    """Settings beside --resume must be those of the run."""
    if args.force or args.dry_run:
        raise ConfigError("--resume goes on with a run as it is: leave out --force and --dry-run")
    if args.config is None and not args.overrides:
        return
    from qrl.agents.runs.run_folder import RunFolder
    from qrl.agents.runs.training_run import resolve

    saved = RunFolder.existing(args.resume).read_config()
    wanted = settings.load(args.config, args.overrides)
    given = wanted.model_dump(exclude_unset=True)
    changed = differences(saved, resolve(wanted).model_dump(), given)
    if changed:
        raise ConfigError(
            f"--resume {args.resume} cannot change settings: {'; '.join(changed)}; leave them out, or start a new run"
        )
