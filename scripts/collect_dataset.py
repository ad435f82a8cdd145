"""Collect trajectories in a layout or a registered world with an epsilon-greedy policy, or import a Minari dataset."""

import sys
from collections.abc import Sequence

from qrl.common.commands import add_plugin_argument, add_settings_arguments, command, new_parser


@command
def main(argv: Sequence[str] | None = None) -> None:
    # Imported here, so that an interrupt during slow imports is handled.
    from qrl.common.errors import ConfigError
    from qrl.common.files import check_output
    from qrl.envs.collector import CollectorSettings, collect

    parser = new_parser("collect-dataset", __doc__)
    parser.add_argument("out", metavar="OUT.npz", help="file to write")
    parser.add_argument("--force", action="store_true", help="overwrite OUT.npz if it exists")
    parser.add_argument("--from-minari", metavar="ID", help="import this local Minari dataset instead of collecting")
    add_plugin_argument(parser, argv)
    add_settings_arguments(parser, CollectorSettings, argv)
    args = parser.parse_intermixed_args(argv)

    out = check_output(args.out, ".npz", args.force)
    if args.from_minari is None:
        dataset = collect(CollectorSettings.load(args.config, args.overrides), progress=True)
    elif args.config is None and not args.overrides:
        from qrl.envs.minari_exchange import from_minari

        dataset = from_minari(args.from_minari)
    else:
        raise ConfigError("--from-minari imports a dataset unchanged; remove --config and key=value")
    for notice in dataset.world.notices if dataset.world is not None else ():
        print(f"note: {notice}", file=sys.stderr)
    dataset.save(out)
    print(f"wrote {out}: {dataset.num_episodes:,} episodes, {dataset.num_transitions:,} transitions")
