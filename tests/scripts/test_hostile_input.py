"""Hostile and absurd input to the commands: one short error, status 2, at once, and nothing left behind."""

import os
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from qrl.common.errors import MAX_MESSAGE
from qrl.scripts import (
    collect_dataset,
    collect_graph,
    compare_agents,
    evaluate_planning,
    inspect_dataset,
    report_sweep,
    sweep_agents,
    train_agent,
    train_graph,
)
from tests.agents.worlds import corridor
from tests.qrl.common.test_yaml_text import HOSTILE, alias_bomb

SECONDS = 2  # of processor time: what is refused takes milliseconds, apart from late imports
Main = Callable[[Sequence[str] | None], int]

STUDY = """
families: {mrn: {}}
axis: {collector.trajectories: [10]}
seeds: [0]
"""


@pytest.fixture(scope="module", autouse=True)
def _imported(trained: Path) -> None:
    """`trained` imports torch, so that the time of that is not measured; the rest is imported here."""
    import qrl.agents.studies.report  # noqa: F401


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")


def refused(main: Main, arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The error message of a command, after checking that it is the only thing that happens."""
    before = sorted(os.listdir())
    start = time.process_time()
    try:
        status = main(arguments)
    except SystemExit as exit_:  # of argparse
        status = int(str(exit_.code))
    seconds = time.process_time() - start
    captured = capsys.readouterr()
    assert status == 2
    assert seconds < SECONDS
    assert captured.out == ""
    assert "error: " in captured.err
    message = captured.err[captured.err.index("error: ") :]
    assert len(message) <= MAX_MESSAGE + 20
    assert "x" * 250 not in message
    assert "9" * 250 not in message
    assert sorted(os.listdir()) == before
    return message


# Paths

PATHS: dict[str, Callable[[Path], str]] = {
    "NUL": lambda _: "a\0b",
    "long name": lambda _: "x" * 300,
    "very long": lambda _: "x" * 100_000,
    "long path": lambda _: "xx/" * 2000,
    "surrogate": lambda _: "\ud800",
    "device": lambda _: "/dev/zero",
    "pipe": lambda folder: str(folder / "pipe"),
    "folder": lambda folder: str(folder / "folder"),
    "file as folder": lambda folder: f"{folder / 'file'}/x",
}
RUN = "RUN"  # stands for a trained run, and BAD for the path
ROLES: dict[str, tuple[Main, list[str]]] = {
    "config": (train_agent.main, ["--config", "BAD"]),
    "config with suffix": (train_agent.main, ["--config", "BAD.yaml"]),
    "resumed run": (train_agent.main, ["--resume", "BAD"]),
    "initial run": (train_agent.main, ["--init", "BAD", "run=new"]),
    "dataset": (train_agent.main, ["dataset=BAD", "run=new"]),
    "layout": (train_agent.main, ["collector.layout=BAD", "run=new"]),
    "dataset of a graph": (train_graph.main, ["dataset=BAD", "run=new"]),
    "edge list": (train_graph.main, ["graph.kind=edge-list", "graph.file=BAD", "run=new"]),
    "layout of data": (collect_dataset.main, ["out.npz", "layout=BAD"]),
    "config of data": (collect_dataset.main, ["out.npz", "--config", "BAD"]),
    "features": (
        collect_graph.main,
        ["out.npz", "kind=edge-list", "file=EDGES", "features=BAD", "landmarks=2", "pairs=1", "validation_pairs=1"],
    ),
    "npz features": (
        collect_graph.main,
        ["out.npz", "kind=edge-list", "file=EDGES", "features=BAD.npz", "landmarks=2", "pairs=1", "validation_pairs=1"],
    ),
    "study": (sweep_agents.main, ["BAD", "--dry-run"]),
    "config of a study": (sweep_agents.main, ["STUDY", "config=BAD", "--dry-run"]),
    "report of a study": (report_sweep.main, ["BAD"]),
    "evaluated run": (evaluate_planning.main, ["BAD"]),
    "checkpoint": (evaluate_planning.main, [RUN, "--checkpoint", "BAD"]),
    "evaluated dataset": (evaluate_planning.main, [RUN, "--dataset", "BAD"]),
    "compared run": (compare_agents.main, ["out.html", RUN, "BAD"]),
    "inspected dataset": (inspect_dataset.main, ["BAD"]),
}
OUTPUTS: dict[str, tuple[Main, list[str]]] = {
    "run": (train_agent.main, ["run=BAD"]),
    "data": (collect_dataset.main, ["BAD.npz"]),
    "graph": (collect_graph.main, ["BAD.npz"]),
    "study": (sweep_agents.main, ["STUDY", "out=BAD", "--dry-run"]),
    "JSON": (evaluate_planning.main, [RUN, "--json", "BAD.json"]),
    "pictures": (evaluate_planning.main, [RUN, "--pictures", "BAD"]),
    "report": (compare_agents.main, ["BAD.html", RUN]),
}


def _arguments(template: list[str], bad: str, folder: Path, run: Path) -> list[str]:
    (folder / "folder").mkdir(exist_ok=True)
    (folder / "file").touch()
    os.mkfifo(folder / "pipe")
    (folder / "edges.txt").write_text("0 1\n1 2\n2 0\n")
    (folder / "study.yaml").write_text(STUDY)
    names = {"BAD": bad, "EDGES": str(folder / "edges.txt"), "STUDY": str(folder / "study.yaml"), "RUN": str(run)}
    for name, value in names.items():
        template = [text.replace(name, value) for text in template]
    return template


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("kind", PATHS)
def test_paths_that_cannot_be_read(
    role: str, kind: str, tmp_path: Path, trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main, template = ROLES[role]
    refused(main, _arguments(template, PATHS[kind](tmp_path), tmp_path, trained), capsys)


@pytest.mark.parametrize("role", OUTPUTS)
@pytest.mark.parametrize("kind", ["NUL", "long name", "very long", "long path", "surrogate"])
def test_paths_that_cannot_be_written(
    role: str, kind: str, tmp_path: Path, trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main, template = OUTPUTS[role]
    refused(main, _arguments(template, PATHS[kind](tmp_path), tmp_path, trained), capsys)


@pytest.mark.parametrize("name", ["config.yaml", "run.json", "checkpoint.safetensors", "dataset.npz"])
def test_pipes_in_a_run(name: str, tmp_path: Path, trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(trained, tmp_path / "run")
    (tmp_path / "run" / name).unlink()
    (tmp_path / "run" / "COMPLETE").unlink()
    os.mkfifo(tmp_path / "run" / name)
    assert name in refused(train_agent.main, ["--resume", str(tmp_path / "run")], capsys)


# Contents


@pytest.mark.parametrize("name", ["alias bomb", "self-reference", "60,000 keys", "deep list", "long integer", "NUL"])
def test_hostile_yaml(name: str, tmp_path: Path, trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "hostile.yaml"
    path.write_text(HOSTILE[name][0])
    for main, arguments in ((train_agent.main, ["--config", str(path)]), (sweep_agents.main, [str(path)])):
        assert "hostile.yaml" in refused(main, arguments, capsys)
    run = tmp_path / "run"
    shutil.copytree(trained, run)
    shutil.copy(path, run / "config.yaml")
    assert "config.yaml" in refused(train_agent.main, ["--resume", str(run)], capsys)


LONG = "x" * 50_000
DIGITS = "9" * 2_000
MANY = ", ".join(f"k{i}: 1" for i in range(2_000))
SETTINGS = {
    "unknown key": f"{LONG}: 1",
    "many unknown keys": MANY.replace(", ", "\n"),
    "unknown nested key": f"learner: {{{LONG}: 1}}",
    "value of a wrong type": f"seed: {LONG}",
    "list of a wrong type": f"seed: [{'xxxxxxxxx, ' * 2_000}]",
    "mapping of a wrong type": f"seed: {{{MANY}}}",
    "text of digits": f"seed: '{DIGITS}'",
    "long integer": f"seed: {DIGITS}",
    "group as text": f"learner: {LONG}",
    "group as a list": f"model: [{'xxxxxxxxx, ' * 2_000}]",
    "unknown choice": f"compile: {LONG}",
    "unknown model": f"model: {{name: {LONG}}}",
    "unknown parameter": f"model: {{params: {{{LONG}: 1}}}}",
    "many unknown parameters": f"model: {{params: {{{MANY}}}}}",
    "parameter of a wrong type": f"model: {{params: {{hidden_sizes: {LONG}}}}}",
    "unknown learner": f"learner: {{name: {LONG}}}",
    "learner of a wrong type": f"learner: {{name: [{LONG}]}}",
    "unknown layout": f"collector: {{layout: {LONG}}}",
    "device": f"device: {LONG}",
    "include": f"include: {LONG}",
    "include of a wrong type": f"include: [{LONG}]",
    "no mapping": f"[{LONG}]",
    "aliases of legal size": alias_bomb(4) + "\nseed: *a3",
}


@pytest.mark.parametrize("kind", SETTINGS)
def test_bad_settings_are_not_repeated_at_length(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(f"{SETTINGS[kind]}\n" + ("" if kind == "no mapping" else "run: new\n"))
    refused(train_agent.main, ["--config", str(path)], capsys)


GRID = "{" + ", ".join(f"learner.k{i}: [{', '.join(map(str, range(10)))}]" for i in range(12)) + "}"
STUDIES = {
    "10^12 combinations": STUDY.replace("{mrn: {}}", f"{{mrn: {{grid: {GRID}}}}}") + "tuning_seeds: [1]",
    "many seeds": STUDY.replace("[0]", f"[{', '.join(map(str, range(4_000)))}]").replace(
        "[10]", str(list(range(1, 31)))
    ),
    "many worlds and values": STUDY.replace("[10]", f"[{', '.join(map(str, range(1, 2_000)))}]")
    + f"worlds: {{{', '.join(f'w{i}: {{}}' for i in range(1_000))}}}",
    "name of a family": STUDY.replace("mrn", f"? {LONG}\n "),
    "bad name of a family": STUDY.replace("mrn", "'a/b'"),
    "name of a world": STUDY + f"worlds: {{? {LONG} : {{}}}}",
    "name": STUDY + f"name: {LONG}",
    "long values of a grid": STUDY.replace("{mrn: {}}", f"{{mrn: {{grid: {{device: [{LONG}, cpu]}}}}}}")
    + "tuning_seeds: [1]",
    "unknown family": STUDY + f"claims: [{{text: a, more: [{LONG}], than: [mrn]}}]",
    "text of a claim": STUDY + f"claims: [{{text: {LONG}, more: [a], than: [mrn]}}]",
    "seeds twice": STUDY.replace("[0]", f"[{'0, ' * 2_000}]"),
    "tuning values": STUDY.replace("[10]", f"[{', '.join(map(str, range(1, 2_000)))}]") + "tuning_values: [0]",
    "axis": STUDY.replace("collector.trajectories", f"? {LONG}\n "),
    "deep axis": STUDY.replace("collector.trajectories", "x." * 500 + "x"),
    "numbers as keys": STUDY + "settings: {model: {params: {1: 2}}}",
    "settings": STUDY + f"settings: {{{MANY}}}",
}


@pytest.mark.parametrize("kind", STUDIES)
def test_bad_studies(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(STUDIES[kind])
    message = refused(sweep_agents.main, [str(path), "--dry-run"], capsys)
    if kind in ("10^12 combinations", "many seeds", "many worlds and values"):
        assert "more than 100,000 runs would be planned" in message


@pytest.mark.parametrize(
    "override",
    [
        f"seed={'9' * 4000}",
        f"seed={'9' * 5000}",
        f"learner.min_steps={'9' * 4000}",
        f"learner.lr={'9' * 4000}",
        f"learner.lr={'9' * 5000}",
        f"threads={2**62}",
        f"{LONG}=1",
        f"seed={LONG}",
        LONG,
        "a." * 5000 + "b=1",
        "seed.a.b=1",
        "seed=" + "[" * 5000,
        "seed=" + alias_bomb(9).replace("\n", ", ").join("{}"),
    ],
    ids=lambda override: override[:20],
)
def test_bad_overrides(override: str, capsys: pytest.CaptureFixture[str]) -> None:
    refused(train_agent.main, ["run=new", override], capsys)


@pytest.mark.parametrize("option", ["--protocol", "--episodes", "--seed", "--goal", "--reference", "--xxx"])
def test_bad_options(option: str, trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refused(evaluate_planning.main, [str(trained), option, LONG], capsys)


def test_feature_files_without_a_closing_brace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    features = tmp_path / "features.npy"
    np.save(features, np.zeros((3, 64)))
    features.write_bytes(features.read_bytes().replace(b"}", b" "))
    arguments = _arguments(ROLES["features"][1], str(features), tmp_path, tmp_path)
    assert "features.npy cannot be read as an array: its header is not" in refused(
        collect_graph.main, arguments, capsys
    )


def test_datasets_without_a_closing_brace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corridor().save(tmp_path / "data.npz")
    content = (tmp_path / "data.npz").read_bytes()
    (tmp_path / "data.npz").write_bytes(content.replace(b", }", b",  ", 1))
    refused(inspect_dataset.main, [str(tmp_path / "data.npz")], capsys)
