"""Validate a dataset, print its card, draw its coverage, or export it to Minari or in OGBench's layout."""

from collections.abc import Sequence

from qrl.common.commands import add_plugin_argument, command, new_parser


@command
def main(argv: Sequence[str] | None = None) -> None:
    parser = new_parser("inspect-dataset", __doc__)
    parser.add_argument("file", metavar="FILE.npz", help="dataset to inspect")
    parser.add_argument(
        "--picture", metavar="OUT.png", help="draw the states and actions of the data, as .png, .pdf or .svg"
    )
    parser.add_argument("--force", action="store_true", help="overwrite files that exist")
    parser.add_argument("--to-minari", metavar="ID", help="export to a local Minari dataset with this id")
    parser.add_argument(
        "--to-ogbench", metavar="OUT.npz", help="export in OGBench's layout, with OUT-val.npz beside it"
    )
    add_plugin_argument(parser, argv)
    args = parser.parse_args(argv)

    # Imported here, so that --help is fast and an interrupt during slow imports is handled.
    from qrl.common.files import FIGURE_FORMATS, check_output
    from qrl.envs.card import card
    from qrl.envs.dataset import Dataset
    from qrl.envs.errors import DatasetError

    # Whatever was asked for but cannot be done is refused before anything is printed or written.
    picture = None if args.picture is None else check_output(args.picture, FIGURE_FORMATS, args.force)
    if args.to_minari is not None:
        from qrl.envs.minari_exchange import check_export, to_minari

        check_export(args.to_minari)
    if args.to_ogbench is not None:
        from qrl.envs.ogbench_exchange import to_ogbench, validation_path

        for path in (args.to_ogbench, validation_path(args.to_ogbench)):
            check_output(path, ".npz", args.force)
    dataset = Dataset.load(args.file)
    if picture is not None and (dataset.known_world is None or dataset.known_world.cells is None):
        raise DatasetError(f"{args.file} has no map to draw: its states have no cells; remove --picture")

    for name, text in {"file": f"{args.file} (valid)", **card(dataset)}.items():
        print(f"{name:<20} {text}")
    if picture is not None:
        from qrl.envs.pictures import coverage_picture

        coverage_picture(dataset, picture)
        print(f"{'picture':<20} {picture}")
    if args.to_minari is not None:
        to_minari(dataset, args.to_minari)
        print(f"{'Minari dataset':<20} {args.to_minari}")
    if args.to_ogbench is not None:
        print(f"{'OGBench files':<20} {', '.join(map(str, to_ogbench(dataset, args.to_ogbench)))}")
