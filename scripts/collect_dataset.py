"""Collect trajectories in a layout or a registered world, or import a dataset of Minari or OGBench."""

import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from qrl.common.commands import add_plugin_argument, add_settings_arguments, command, new_parser
from qrl.common.errors import ConfigError

if TYPE_CHECKING:
    from qrl.envs.dataset import Dataset


@command
def main(argv: Sequence[str] | None = None) -> None:
    # Imported here, so that an interrupt during slow imports is handled.
    from qrl.common.files import check_output
    from qrl.envs.collector import CollectorSettings, collect

    parser = new_parser("collect-dataset", __doc__)
    parser.add_argument("out", metavar="OUT.npz", help="file to write")
    parser.add_argument("--force", action="store_true", help="overwrite OUT.npz if it exists")
    add = parser.add_argument
    add("--from-minari", metavar="ID", help="import this local Minari dataset instead of collecting")
    add("--from-ogbench", metavar="FILE", help="import this .npz in OGBench's layout; needs --num-actions")
    add("--num-actions", type=int, metavar="N", help="number of discrete actions of --from-ogbench")
    add_plugin_argument(parser, argv)
    add_settings_arguments(parser, CollectorSettings, argv)
    args = parser.parse_intermixed_args(argv)

    out = check_output(args.out, ".npz", args.force)
    imported = _import(args)
    if imported is not None and (args.config is not None or args.overrides):
        raise ConfigError("an imported dataset stays unchanged; remove --config and key=value")
    dataset = imported() if imported else collect(CollectorSettings.load(args.config, args.overrides), progress=True)
    for notice in dataset.world.notices if dataset.world is not None else ():
        print(f"note: {notice}", file=sys.stderr)
    dataset.save(out)
    print(f"wrote {out}: {dataset.num_episodes:,} episodes, {dataset.num_transitions:,} transitions")


def _import(args: Namespace) -> "Callable[[], Dataset] | None":
    """What imports the dataset, if one is to be imported."""
    if args.from_minari is not None and args.from_ogbench is not None:
        raise ConfigError("import one dataset: either --from-minari or --from-ogbench")
    if (args.from_ogbench is None) != (args.num_actions is None):
        raise ConfigError("--from-ogbench needs --num-actions, which its files do not record, and nothing else does")
    if args.from_minari is not None:
        from qrl.envs.minari_exchange import from_minari

        return lambda: from_minari(args.from_minari)
    if args.from_ogbench is not None:
        from qrl.envs.ogbench_exchange import from_ogbench

        return lambda: from_ogbench(args.from_ogbench, args.num_actions)
    return None
