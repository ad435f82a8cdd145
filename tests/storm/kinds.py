"""Every kind of file that qrl reads: how an undamaged one is made, and what a user does with it."""

import contextlib
import gzip
import io
import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import numpy as np

from qrl.common.config_files import dump_yaml
from qrl.common.errors import UserError
from tests.agents.studies.hand_made import TINY, InlineBackend
from tests.storm import containers, mutations, structures
from tests.storm.mutations import Mutation
from tests.storm.processes import Main
from tests.storm.states import end_state

Use = Callable[[], object]


class LostError(Exception):
    """What a user had is gone, and no error was shown."""


_SMALL = ["compile=off", "threads=1", "model.width=8", "model.latent_size=8", "learner.batch_size=16"]
_SHORT = ["learner.epochs=0.01", "learner.min_steps=8", "log_every=2", "evaluate_every=4", "checkpoint_every=4"]
_GRAPH = ["kind=edge-list", "landmarks=4", "pairs=20", "validation_pairs=6", "feature_size=4", "features=features.npy"]
STUDY = dump_yaml(
    TINY
    | {
        "families": {"iqe-maxmean": {}, "regularized": {"model": "dot", "grid": {"learner.triangle": [0.3, 3]}}},
        "tuning_seeds": [7],
        "claims": [{"text": "quasimetrics are better", "more": ["iqe-maxmean"], "than": ["regularized"]}],
    }
)
_MINARI = "storm/corridor-v0"
_RUN = "study/results/runs/iqe-maxmean__5__seed0"
_SCORES = "study/results/data/*.json"


def one_error(text: str) -> str | None:
    """The error that a command shows, if it is one."""
    errors = re.findall("^error: .*", text, re.MULTILINE)
    return errors[0] if len(errors) == 1 else None


def command(main: Main, *argv: str) -> str:
    """The output of a command; raises a UserError where it ends with one, and an error where it shows another."""
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        status = main(argv)
    text = err.getvalue()
    if "Traceback" in text or "Exception in thread" in text or (status and one_error(text) is None):
        raise RuntimeError(f"status {status}: {text}")
    if status:
        raise UserError(text)
    return out.getvalue()


# What is done with the files, in the folder that holds them


def inspect(file: str = "data.npz") -> object:
    from qrl.scripts import inspect_dataset

    return command(inspect_dataset.main, file)


def inspect_maze() -> object:
    return inspect("maze.npz")


def inspect_minigrid() -> object:
    return inspect("minigrid.npz")


def resume(run: str = "stopped") -> object:
    from qrl.scripts import train_agent

    command(train_agent.main, "--resume", run)
    return end_state(Path(run))


def resume_metrics() -> object:
    """Rows that the damage has spared must be in the file that a resume accepts."""
    path = Path("stopped/metrics.csv")
    undamaged = Path("../../specimens/agent", path).read_bytes().splitlines()[1:]
    damaged = path.read_bytes().splitlines() if path.is_file() else []
    state = resume()
    rows = [set(line.split(b",")) for line in path.read_bytes().splitlines()]
    lost = [line for line in undamaged if line in damaged and not any(set(line.split(b",")) <= row for row in rows)]
    if lost:
        raise LostError(f"rows that could be read are gone: {lost}")
    return state


def resume_done() -> object:
    return resume("done")


def resume_graph() -> object:
    from qrl.scripts import train_graph

    command(train_graph.main, "--resume", "stopped")
    return end_state(Path("stopped"))


def evaluate() -> object:
    from qrl.scripts import evaluate_planning

    command(evaluate_planning.main, "done", "--json", "out.json")
    return json.loads(Path("out.json").read_text())


def load() -> object:
    import qrl
    from qrl.envs.layout import load_layout

    return qrl.load("done").all_costs(load_layout("corridor").observations).tobytes()


def collect_layout() -> object:
    from qrl.scripts import collect_dataset

    command(collect_dataset.main, "out.npz", "layout=layout.txt", "trajectories=3", "max_steps=10")
    return Path("out.npz").read_bytes()


def collect_edges(file: str = "edges.txt") -> object:
    from qrl.scripts import collect_graph

    command(collect_graph.main, "out.npz", f"file={file}", *_GRAPH)
    return Path("out.npz").read_bytes()


def collect_zipped_edges() -> object:
    return collect_edges("edges.txt.gz")


def load_graph() -> object:
    from qrl.envs.graphs.dataset import GraphDataset

    return GraphDataset.load("data.npz").content_hash


def train_settings() -> object:
    from qrl.agents.runs.settings import TrainSettings

    return TrainSettings.load("settings.yaml").model_dump()


def graph_settings() -> object:
    from qrl.agents.runs.settings import GraphTrainSettings

    return GraphTrainSettings.load("graph.yaml").model_dump()


def plan_study() -> object:
    from qrl.agents.studies.study import Study
    from qrl.agents.studies.sweep import check_models

    study = Study.load("study.yaml", [])
    check_models(study)
    return study.resolved


def continue_sweep() -> object:
    from qrl.agents.studies.folder import StudyFolder
    from qrl.agents.studies.study import Study
    from qrl.agents.studies.sweep import sweep

    folder = StudyFolder("results")
    with contextlib.redirect_stdout(io.StringIO()), InlineBackend() as backend:
        failed = sweep(Study.load("study.yaml", []), folder, backend)
    errors = [json.loads(path.read_text())["error"] for path in sorted(folder.path.glob("failed/*.json"))]
    if any("Traceback" in error for error in errors):
        raise RuntimeError("\n".join(errors))
    if failed:
        raise UserError("\n".join(errors))
    return {name: data for name, data in end_state(folder.path).items() if name.endswith((".csv", "evaluation.json"))}


def report(folder: str = "results") -> object:
    from qrl.scripts import report_sweep

    # The figure takes half a second and reads no file.
    with mock.patch("qrl.agents.studies.report.study_picture"):
        return command(report_sweep.main, folder, "--out", "report")


def report_table() -> object:
    return report("table")


def read_curves() -> object:
    from qrl.agents.studies.curves import read_curves

    return read_curves(Path("results/curves.csv"))


def import_minari() -> object:
    from qrl.envs.minari_exchange import from_minari

    os.environ["MINARI_DATASETS_PATH"] = str(Path.cwd())
    with contextlib.redirect_stderr(io.StringIO()):
        return from_minari(_MINARI).content_hash


@dataclass(frozen=True)
class Kind:
    name: str
    file: str  # below the folder of the specimens; a pattern, where its name has a hash
    mutations: list[Mutation]
    uses: tuple[Use, ...]
    weight: int  # number of files of 10,000, roughly
    hashed: bool = False  # a change that is accepted must change nothing

    @property
    def folder(self) -> str:
        return self.file.partition("/")[0]


KINDS = [
    Kind("trajectory dataset", "agent/data.npz", containers.NPZ, (inspect, inspect, resume, evaluate), 1300, True),
    Kind("dataset of a maze", "agent/maze.npz", containers.NPZ, (inspect_maze,), 300, True),
    Kind("dataset of a MiniGrid world", "agent/minigrid.npz", containers.NPZ, (inspect_minigrid,), 200, True),
    Kind("checkpoint, resumed", "agent/stopped/checkpoint.safetensors", containers.TENSORS, (resume,), 900, True),
    Kind(
        "checkpoint, loaded",
        "agent/done/checkpoint.safetensors",
        containers.TENSORS,
        (load, load, evaluate),
        1200,
        True,
    ),
    Kind("config.yaml", "agent/stopped/config.yaml", structures.YAML, (resume,), 600),
    Kind("config.yaml, loaded", "agent/done/config.yaml", structures.YAML, (load, load, evaluate), 400),
    Kind("run.json", "agent/stopped/run.json", structures.JSON, (resume,), 500),
    Kind("metrics.csv", "agent/stopped/metrics.csv", structures.CSV, (resume_metrics,), 600),
    Kind("COMPLETE", "agent/done/COMPLETE", structures.JSON, (resume_done, evaluate), 250),
    Kind("settings (YAML)", "agent/settings.yaml", structures.YAML, (train_settings,), 700),
    Kind("layout (text)", "agent/layout.txt", mutations.TEXT, (collect_layout,), 600),
    Kind("graph dataset", "graph/data.npz", containers.NPZ, (load_graph, load_graph, resume_graph), 700, True),
    Kind("graph settings (YAML)", "graph/graph.yaml", structures.YAML, (graph_settings,), 300),
    Kind("edge list (text)", "graph/edges.txt", mutations.TEXT, (collect_edges,), 400),
    Kind("edge list (gzip)", "graph/edges.txt.gz", containers.GZIP, (collect_zipped_edges,), 400),
    Kind("node features (.npy)", "graph/features.npy", containers.NPY, (collect_edges,), 500),
    Kind("study (YAML)", "study/study.yaml", structures.YAML, (plan_study,), 700),
    Kind("study.yaml of a sweep", "study/results/study.yaml", structures.YAML, (continue_sweep, report), 250),
    Kind("results.csv", "study/table/results.csv", structures.CSV, (report_table,), 500),
    Kind("results.csv of a sweep", "study/results/results.csv", structures.CSV, (continue_sweep, report), 200),
    Kind("curves.csv", "study/results/curves.csv", structures.CSV, (read_curves,), 200),
    Kind("evaluation.json", f"{_RUN}/evaluation.json", structures.JSON, (continue_sweep, report), 300),
    Kind("references (JSON)", _SCORES, structures.JSON, (continue_sweep, report), 200),
    Kind("Minari metadata (JSON)", f"minari/{_MINARI}/data/metadata.json", structures.JSON, (import_minari,), 150),
    Kind("Minari data (HDF5)", f"minari/{_MINARI}/data/main_data.hdf5", mutations.BYTES, (import_minari,), 250),
]


def make_specimens(folder: Path) -> None:
    """Undamaged files of every kind, in folders below `folder`, where they must stay: runs know where their data is."""
    for make in (_agent, _graph, _study, _minari):
        part = folder / make.__name__.strip("_")
        part.mkdir()
        os.chdir(part)
        make()


def _agent() -> None:
    from qrl.envs.layout import load_layout
    from qrl.scripts import collect_dataset, train_agent

    command(collect_dataset.main, "data.npz", "layout=corridor", "trajectories=12", "max_steps=15")
    for world in ("maze", "minigrid"):
        command(collect_dataset.main, f"{world}.npz", f"world={world}", "trajectories=3", "max_steps=15")
    for run in ("done", "stopped"):
        command(train_agent.main, f"run={run}", "dataset=data.npz", *_SMALL, *_SHORT)
    _stop(Path("stopped"))
    Path("settings.yaml").write_text(Path("done/config.yaml").read_text())
    Path("layout.txt").write_text(load_layout("corridor").text)


def _stop(run: Path) -> None:
    """Put a finished run back to its fourth step."""
    from qrl.agents.runs.run import Run

    opened = Run.open(run)
    shutil.rmtree(run)
    fresh = Run.start(opened.settings)
    for _ in fresh.train(stop=lambda: fresh.trainer.learner.steps_done >= 4):
        pass


def _graph() -> None:
    from qrl.scripts import collect_graph, train_graph

    rng = np.random.default_rng(0)
    edges = "# an edge list\n" + "".join(f"{one} {(one + step) % 12}\n" for one in range(12) for step in (1, 3))
    Path("edges.txt").write_text(edges)
    Path("edges.txt.gz").write_bytes(gzip.compress(edges.encode()))
    np.save("features.npy", rng.normal(size=(12, 4)).astype(np.float32))
    command(collect_graph.main, "data.npz", "file=edges.txt", *_GRAPH)
    command(train_graph.main, "run=stopped", "dataset=data.npz", *_SMALL, *_SHORT)
    _stop(Path("stopped"))
    Path("graph.yaml").write_text(Path("stopped/config.yaml").read_text())


def _study() -> None:
    Path("study.yaml").write_text(STUDY)
    continue_sweep()
    Path("table").mkdir()
    for name in ("study.yaml", "results.csv"):
        shutil.copy(f"results/{name}", "table")


def _minari() -> None:
    from qrl.envs.dataset import Dataset
    from qrl.envs.minari_exchange import to_minari

    os.environ["MINARI_DATASETS_PATH"] = str(Path.cwd())
    to_minari(Dataset.load("../agent/data.npz"), _MINARI)
