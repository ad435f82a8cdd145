"""Create a dataset of shortest-path distances from a random graph or a SNAP edge list."""

from collections.abc import Sequence

from qrl.common.commands import add_settings_arguments, command, new_parser


@command
def main(argv: Sequence[str] | None = None) -> None:
    # Imported here, so that an interrupt during slow imports is handled.
    from qrl.common.errors import ConfigError
    from qrl.common.files import FIGURE_FORMATS, check_output
    from qrl.envs.graphs.collector import GraphSettings, collect_graph

    parser = new_parser("collect-graph", __doc__)
    parser.add_argument("out", metavar="OUT.npz", help="file to write")
    parser.add_argument("--force", action="store_true", help="overwrite OUT.npz and the picture if they exist")
    parser.add_argument(
        "--picture", metavar="FILE.png", help="random graphs: plot the distances, as .png, .pdf or .svg"
    )
    add_settings_arguments(parser, GraphSettings)
    args = parser.parse_intermixed_args(argv)

    out = check_output(args.out, ".npz", args.force)
    settings = GraphSettings.load(args.config, args.overrides)
    if args.picture is not None:
        check_output(args.picture, FIGURE_FORMATS, args.force)
        if settings.kind == "edge-list":
            raise ConfigError("--picture plots all distances of a random graph; remove it for kind=edge-list")
    dataset = collect_graph(settings)
    dataset.save(out)
    header = dataset.header
    print(f"wrote {out}: {dataset}")
    fractions = ", ".join(f"{fraction:.1%} in {split}" for split, fraction in header.unreachable.items())
    print(f"unreachable pairs: {fractions}")
    if header.self_loops or header.repeated_edges:
        print(f"dropped: {header.self_loops:,} self-loops, {header.repeated_edges:,} repeated edges")
    if args.picture is not None:
        from qrl.envs.graphs.pictures import distances_picture

        distances_picture(settings, args.picture)
        print(f"wrote {args.picture}")
