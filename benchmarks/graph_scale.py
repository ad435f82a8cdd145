"""Every stage on a graph of the size of web-BerkStan: writes docs/graphs/scale.csv with times and memory.

Run with `python -m benchmarks.graph_scale`; takes some minutes. Each stage runs in its own process.
"""

import csv
import gzip
import io
import multiprocessing
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from qrl.agents.runs.graph_training import GraphTraining

from benchmarks.measure import peak_memory
from qrl.agents.runs.settings import GraphTrainSettings
from qrl.agents.runs.trainer import Trainer
from qrl.common.files import atomic_write
from qrl.envs.graphs.collector import GraphSettings, collect_graph
from qrl.envs.graphs.dataset import GraphDataset
from qrl.envs.graphs.graph import read_edge_list
from qrl.envs.graphs.landmarks import Searches
from qrl.envs.graphs.node2vec import WalkSettings, node2vec

NODES, EDGES = 685_230, 7_600_595  # those of web-BerkStan
LANDMARKS, FEATURES, STEPS = 100, 128, 20


def write_graph(path: Path) -> None:
    """An edge from every node to the next; the others lead to nearby and to popular nodes, roughly as in the web."""
    rng = np.random.default_rng(0)
    nodes = np.arange(NODES, dtype=np.int64)
    keys = nodes * NODES + (nodes + 1) % NODES
    while len(keys) < EDGES:
        more = EDGES - len(keys)
        sources, popular = rng.integers(NODES, size=more), (NODES * rng.random(more) ** 3).astype(np.int64)
        near = (sources + rng.integers(1, 50, size=more)) % NODES
        targets = np.where(rng.random(more) < 0.5, near, popular)
        keys = np.unique(np.concatenate([keys, (sources * NODES + targets)[sources != targets]]))
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b"# Directed graph, synthetic\n# FromNodeId\tToNodeId\n")
        for part in np.array_split(rng.permutation(keys), 100):
            file.write("".join(f"{key // NODES}\t{key % NODES}\n" for key in part.tolist()).encode())


def load(file: Path) -> str:
    graph = read_edge_list(file)
    return f"{graph.num_nodes:,} nodes, {graph.num_edges:,} edges"


def search(file: Path) -> str:
    graph = read_edge_list(file)
    landmarks = np.random.default_rng(0).choice(graph.num_nodes, LANDMARKS, replace=False)
    begin = time.perf_counter()
    Searches(graph, landmarks, excluded=landmarks[:0])
    return f"{time.perf_counter() - begin:.0f} s of it searching"


def walks(file: Path) -> str:
    settings = WalkSettings(walks=1, length=10)
    features = node2vec(read_edge_list(file), FEATURES, settings, seed=0)
    np.save(file.with_suffix(".npy"), features)
    whole = WalkSettings()
    default = f"the default is {whole.walks} of {whole.length}"
    return f"{settings.walks} walk of {settings.length} nodes from each node; {default}"


def collect(file: Path) -> str:
    settings = GraphSettings(
        kind="edge-list",
        file=str(file),
        features=str(file.with_suffix(".npy")),
        feature_size=FEATURES,
        landmarks=LANDMARKS,
    )
    dataset = collect_graph(settings)
    dataset.save(file.with_suffix(".npz"))
    size = file.with_suffix(".npz").stat().st_size / 2**20
    return f"{len(dataset.training_pairs):,} and {len(dataset.validation_pairs):,} pairs; a file of {size:,.0f} MiB"


def train(file: Path) -> str:
    settings = GraphTrainSettings.load("graphs/large", ["compile=off"])
    trainer = Trainer.build(settings, GraphDataset.load(file.with_suffix(".npz")))
    begin = time.perf_counter()
    for _ in range(STEPS):
        trainer.learner.step(log=False)
    seconds = (time.perf_counter() - begin) / STEPS
    begin = time.perf_counter()
    trainer.score()
    return (
        f"{seconds:.2f} s per step of iqe-maxmean, {time.perf_counter() - begin:.0f} s for scoring all validation pairs"
    )


def _stage(stage: Callable[[Path], str], file: Path, answer: Any) -> None:
    begin = time.perf_counter()
    result = stage(file)
    answer.send((time.perf_counter() - begin, peak_memory(), result))


def main() -> None:
    stages: dict[str, Callable[[Path], str]] = {
        "load": load,
        f"load, {LANDMARKS} landmarks both ways": search,
        "load, node2vec": walks,
        "collect-graph, with these features": collect,
        f"load the data, {STEPS} training steps": train,
    }
    spawn = multiprocessing.get_context("spawn")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["stage", "time", "peak memory", "of this"])
    with tempfile.TemporaryDirectory() as temporary:
        file = Path(temporary) / "graph.txt.gz"
        write_graph(file)
        for name, stage in stages.items():
            receiving, sending = spawn.Pipe(duplex=False)
            process = spawn.Process(target=_stage, args=(stage, file, sending))
            process.start()
            sending.close()
            seconds, peak, result = receiving.recv()
            process.join()
            writer.writerow([name, f"{seconds:.0f} s", f"{peak:.1f} GiB", result])
            print(text.getvalue().splitlines()[-1], flush=True)
    with atomic_write(Path(__file__).parents[1] / "docs" / "graphs" / "scale.csv") as out:
        out.write(text.getvalue().encode())


if __name__ == "__main__":
    main()
