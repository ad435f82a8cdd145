"""Learned against true distances of some pairs of a large graph, there and back, with the names of its nodes.

python docs/examples.py OUT.csv EDGES NAMES RUN ...: NAMES, gzipped, has the name of node i in line i, from 0; all runs
have one dataset. Of the validation pairs of some distances those are shown whose two nodes are both met most often.
"""

import csv
import gzip
import io
import sys
from pathlib import Path

import numpy as np

import qrl
from qrl.agents.runs.run_folder import RunFolder
from qrl.common.files import atomic_write
from qrl.envs.graphs.dataset import GraphDataset
from qrl.envs.graphs.graph import read_edge_list
from qrl.envs.graphs.landmarks import FAR, steps_from

DISTANCES = (1, 2, 3, 4, 5, 6, 8, 10)


def main(out: str, edges: str, names_file: str, *runs: str) -> None:
    graph = read_edge_list(edges)
    with gzip.open(names_file, "rt") as file:
        names = np.array(file.read().splitlines())[graph.names]
    data = GraphDataset.load(RunFolder.existing(runs[0]).find_dataset())
    met = np.bincount(graph.edges.indices, minlength=graph.num_nodes)  # how many edges lead to a node
    assert np.array_equal(data.names, graph.names), "the runs are of another graph"
    models = {Path(run).name.partition("__")[0]: qrl.load(run) for run in runs}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["from", "to", "true distance", *models])
    used: set[int] = set()
    for distance in DISTANCES:
        pairs = data.validation_pairs[data.validation_distances == distance]
        pairs = pairs[~np.isin(pairs, list(used)).any(1)]  # other nodes every time
        if not len(pairs):
            continue
        one, other = pairs[met[pairs].min(1).argmax()].tolist()
        used |= {one, other}
        for source, target in ((one, other), (other, one)):
            steps = steps_from(graph.edges, source)[target]
            here, there = data.features[[source, target]]
            estimates = (model.distance(here, there, 0, 0) for model in models.values())
            truth = "no way" if steps == FAR else str(steps)
            writer.writerow([names[source], names[target], truth, *(f"{estimate:.1f}" for estimate in estimates)])
    with atomic_write(Path(out)) as target_file:
        target_file.write(text.getvalue().encode())


main(*sys.argv[1:])
