"""Make data of shortest-path distances: of a random graph, or of an edge list as SNAP has them."""

from collections.abc import Sequence

from qrl.common.commands import add_settings_arguments, command, new_parser
from qrl.common.errors import ConfigError
from qrl.common.files import check_output
from qrl.envs.graphs.collector import GraphSettings, collect_graph


@command
def main(argv: Sequence[str] | None = None) -> None:
    parser = new_parser("collect-graph", __doc__)
    parser.add_argument("out", metavar="OUT.npz", help="file to write")
    parser.add_argument("--force", action="store_true", help="overwrite OUT.npz if it exists")
    parser.add_argument("--picture", metavar="FILE.png", help="random graphs: draw the matrix of distances")
    add_settings_arguments(parser, GraphSettings)
    args = parser.parse_intermixed_args(argv)

    out = check_output(args.out, ".npz", args.force)
    settings = GraphSettings.load(args.config, args.overrides)
    if args.picture is not None:
        check_output(args.picture, ".png", args.force)
        if settings.kind == "edge-list":
            raise ConfigError("--picture shows all distances of a small random graph: leave it out with kind=edge-list")
    dataset = collect_graph(settings)
    dataset.save(out)
    header = dataset.header
    print(f"wrote {out}: {dataset}")
    print(f"pairs without a way: {', '.join(f'{share:.1%} in {name}' for name, share in header.unreachable.items())}")
    if header.self_loops or header.repeated_edges:
        print(f"left out: {header.self_loops:,} self-loops, {header.repeated_edges:,} repeated edges")
    if args.picture is not None:
        from qrl.envs.graphs.pictures import distances_picture

        distances_picture(settings, args.picture)
        print(f"wrote {args.picture}")
