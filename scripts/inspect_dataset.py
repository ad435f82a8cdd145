"""Validate a dataset, print its card, draw its coverage, or export it to Minari."""

from collections.abc import Sequence

from qrl.common.commands import command, new_parser
from qrl.common.files import check_output


@command
def main(argv: Sequence[str] | None = None) -> None:
    parser = new_parser("inspect-dataset", __doc__)
    parser.add_argument("file", metavar="FILE.npz", help="dataset to inspect")
    parser.add_argument("--picture", metavar="OUT.png", help="draw how much of the world the data covers")
    parser.add_argument("--force", action="store_true", help="overwrite OUT.png if it exists")
    parser.add_argument("--to-minari", metavar="ID", help="save it as a local Minari dataset")
    args = parser.parse_args(argv)

    picture = None if args.picture is None else check_output(args.picture, ".png", args.force)
    # Imported only now, so that --help answers at once.
    from qrl.envs.card import card
    from qrl.envs.dataset import Dataset

    dataset = Dataset.load(args.file)
    for name, value in {"file": f"{args.file} (valid)", **card(dataset)}.items():
        print(f"{name:<20} {value}")
    if picture is not None:
        from qrl.envs.pictures import coverage_picture

        coverage_picture(dataset, picture)
        print(f"{'picture':<20} {picture}")
    if args.to_minari is not None:
        from qrl.envs.minari_exchange import to_minari

        to_minari(dataset, args.to_minari)
        print(f"{'Minari dataset':<20} {args.to_minari}")
