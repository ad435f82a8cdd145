"""Learned and exact distances of some pairs of nodes of a large graph, in both directions, with the nodes' names.

python docs/examples.py OUT.csv EDGES NAMES RUN ...: line i of NAMES, gzipped, is the name of node i, from 0; all runs
share one dataset. Per distance, the validation pair is shown whose less popular node has the most incoming edges.
"""

import csv
import gzip
import io
import sys
from pathlib import Path

import numpy as np

import qrl
from qrl.agents.runs.run import Run
from qrl.common.files import atomic_write
from qrl.envs.graphs.dataset import GraphDataset
from qrl.envs.graphs.graph import read_edge_list
from qrl.envs.graphs.landmarks import FAR, steps_from

DISTANCES = (1, 2, 3, 4, 5, 6, 8, 10)


def main(out: str, edges: str, names_file: str, *runs: str) -> None:
    graph = read_edge_list(edges)
    with gzip.open(names_file, "rt") as file:
        names = np.array(file.read().splitlines())[graph.names]
    data: GraphDataset = Run.open(runs[0], "train-graph").dataset
    in_degrees = np.bincount(graph.edges.indices, minlength=graph.num_nodes)
    assert np.array_equal(data.names, graph.names), "the runs are of another graph"
    models = {Path(run).name.partition("__")[0]: qrl.load(run) for run in runs}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["from", "to", "exact distance", *models])
    used: set[int] = set()
    for distance in DISTANCES:
        pairs = data.validation_pairs[data.validation_distances == distance]
        pairs = pairs[~np.isin(pairs, list(used)).any(1)]  # no node twice
        if not len(pairs):
            continue
        one, other = pairs[in_degrees[pairs].min(1).argmax()].tolist()
        used |= {one, other}
        for source, target in ((one, other), (other, one)):
            steps = steps_from(graph.edges, source)[target]
            observation, goal = data.features[[source, target]]
            estimates = (model.distance(observation, goal, 0, 0) for model in models.values())
            exact = "unreachable" if steps == FAR else str(steps)
            writer.writerow([names[source], names[target], exact, *(f"{estimate:.1f}" for estimate in estimates)])
    with atomic_write(Path(out)) as target_file:
        target_file.write(text.getvalue().encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
