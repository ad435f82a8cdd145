"""Sweeps as a user starts, kills and restarts them, in processes of their own."""

import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from safetensors.torch import load_file

from qrl.agents.studies.table import Row, read_rows
from qrl.scripts.report_sweep import main as report

SMALL = [
    "studies/smoke",
    "axis.collector.trajectories=[20]",
    "settings.learner.min_steps=40",
    "settings.checkpoint_every=10",
]


def start(*arguments: str, cwd: Path) -> "subprocess.Popen[str]":
    program = "import sys; from qrl.scripts.sweep_agents import main; sys.exit(main())"
    environment = os.environ | {"PYTHONPATH": f"{cwd}:{Path.cwd()}"}
    command = [sys.executable, "-c", program, *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=cwd, env=environment, stdout=pipe, stderr=pipe, text=True)


def sweep(*arguments: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    process = start(*arguments, cwd=cwd)
    out, err = process.communicate(timeout=300)
    return subprocess.CompletedProcess([], process.returncode, out, err)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sweep")
    run = sweep(*SMALL, "out=results", cwd=folder)
    assert run.returncode == 0, run.stderr
    assert "8 runs in results" in run.stdout
    return folder / "results"


def rows(folder: Path) -> list[Row]:
    """Without the time, which differs."""
    return [row.model_copy(update={"seconds": None}) for row in read_rows(folder / "results.csv")]


def assert_same_results(one: Path, other: Path) -> None:
    assert rows(one) == rows(other)
    names = sorted(path.name for path in (one / "runs").iterdir())
    assert names == sorted(path.name for path in (other / "runs").iterdir())
    for name in names:
        first, second = (load_file(each / "runs" / name / "checkpoint.safetensors") for each in (one, other))
        assert all((first[key] == second[key]).all() for key in first)


def test_a_sweep_leaves_ordinary_runs(undisturbed: Path) -> None:
    found = rows(undisturbed)
    assert {row.status for row in found} == {"complete"}
    assert len([row for row in found if row.purpose != "reference"]) == 8
    runs = [row for row in found if row.purpose == "evaluation"]
    assert {row.seed for row in runs} == {0, 1}
    assert len({row.numbers["success_rate"] for row in runs}) > 1
    assert all(row.steps == 40 for row in runs)
    for name in ("config.yaml", "metrics.csv", "COMPLETE", "checkpoint.safetensors", "evaluation.json"):
        assert (undisturbed / "runs" / "iqe-maxmean__20__seed0" / name).is_file()


def test_finished_runs_are_skipped(undisturbed: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in undisturbed.rglob("*") if "runs" in path.parts}
    run = sweep(*SMALL, "out=results", cwd=undisturbed.parent)
    assert run.returncode == 0, run.stderr
    assert {path: path.stat().st_mtime_ns for path in undisturbed.rglob("*") if "runs" in path.parts} == before


def test_dry_run_computes_nothing(undisturbed: Path, tmp_path: Path) -> None:
    run = sweep(*SMALL, "out=results", "--dry-run", cwd=undisturbed.parent)
    assert "2 of 2 complete" in run.stdout
    run = sweep(*SMALL, "out=new", "--dry-run", cwd=tmp_path)
    assert run.returncode == 0
    assert "8 runs" in run.stdout
    assert "triangle=0.3 or triangle=3" in run.stdout
    assert not list(tmp_path.iterdir())


def test_sigkill_and_restart_give_the_same_results(undisturbed: Path, tmp_path: Path) -> None:
    process = start(*SMALL, "out=results", cwd=tmp_path)
    killed = tmp_path / "results"
    while len(list(killed.glob("runs/*/evaluation.json"))) < 2 and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    done = {path: path.stat().st_mtime_ns for path in killed.glob("runs/*/evaluation.json")}
    assert 2 <= len(done) < 8
    begun = {path.parent.name for path in killed.glob("runs/*/checkpoint.safetensors")} - {
        path.parent.name for path in done
    }
    marks = [killed / "runs" / name / "mark" for name in begun]
    for mark in marks:
        mark.touch()  # a run that begins anew loses it, one that goes on keeps it
    run = sweep(*SMALL, "out=results", cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert all(mark.exists() for mark in marks)
    assert {path: path.stat().st_mtime_ns for path in done} == done, "a finished run was done twice"
    assert_same_results(undisturbed, killed)


def test_damaged_results_are_made_again_and_other_settings_refused(undisturbed: Path, tmp_path: Path) -> None:
    copy = tmp_path / "results"
    shutil.copytree(undisturbed, copy)
    damaged = copy / "runs" / "iqe-maxmean__20__seed0"
    (damaged / "evaluation.json").write_text("{")
    assert sweep(*SMALL, "out=results", cwd=tmp_path).returncode == 0
    assert_same_results(undisturbed, copy)
    config = damaged / "config.yaml"
    config.write_text(config.read_text().replace("lr: 0.01", "lr: 0.02"))
    run = sweep(*SMALL, "out=results", cwd=tmp_path)
    assert run.returncode == 2
    assert "learner.lr was 0.02, now 0.01" in run.stderr
    shutil.rmtree(damaged)
    assert report([str(copy)]) == 2  # the table knows of a run that is gone


PLUGIN = """
import os, signal
from pathlib import Path
from qrl import register_head
from qrl.heads import IQE

@register_head("dies")
class Dies(IQE):
    def __init__(self, input_size: int) -> None:
        with Path(__file__).with_name("died").open("a") as file:
            file.write("x")
        os.kill(os.getpid(), signal.SIGKILL)

@register_head("raises")
class Raises(IQE):
    def __init__(self, input_size: int) -> None:
        raise RuntimeError("no such luck")

@register_head("exits")
class Exits(IQE):
    def __init__(self, input_size: int) -> None:
        raise SystemExit(3)
"""
STUDY = """
settings:
  collector.layout: corridor
  model.width: 16
  learner: {min_steps: 10, epochs: 1, batch_size: 32}
  compile: off
families: {iqe-maxmean: {}, dies: {}, raises: {}, exits: {}}
axis: {collector.trajectories: [20]}
seeds: [0]
claims: [{text: alive is better, more: [iqe-maxmean], than: [dies]}]
"""


def test_a_dying_worker_is_named_and_stops_nobody(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "own.py").write_text(PLUGIN)
    (tmp_path / "study.yaml").write_text(STUDY)
    run = sweep("study.yaml", "out=results", "--plugin", "own", "--jobs", "1", cwd=tmp_path)
    assert run.returncode == 1, run.stderr
    assert "3 runs failed" in run.stdout
    assert "dies__20__seed0: its worker process died" in run.stdout + run.stderr
    assert "raises__20__seed0: RuntimeError: no such luck" in run.stdout + run.stderr
    assert (tmp_path / "died").read_text() == "xx"  # tried once more
    found = {row.family: row for row in rows(tmp_path / "results") if row.purpose == "evaluation"}
    assert {family: row.status for family, row in found.items()} == {
        "iqe-maxmean": "complete",
        "dies": "failed",
        "raises": "failed",
        "exits": "failed",
    }
    assert report([str(tmp_path / "results")]) == 0
    out = capsys.readouterr().out
    assert "**3 runs failed**" in out
    assert "**no data**" in out


def test_report_from_the_table_alone(undisturbed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report([str(undisturbed), "--out", str(tmp_path / "one")]) == 0
    for name in ("study.yaml", "results.csv"):
        (tmp_path / name).write_bytes((undisturbed / name).read_bytes())
    assert report([str(tmp_path), "--out", str(tmp_path / "two")]) == 0
    for name in ("report.md", "summary.csv", "figure.png"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    (tmp_path / "results.csv").unlink()
    assert report([str(tmp_path)]) == 2
    assert "neither runs nor results.csv" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["studies/smok"], "did you mean 'studies/smoke'"),
        (["studies/smoke", "--jobs", "0"], "--jobs must be at least 1"),
        (["studies/smoke", "seeds=[]"], "seeds"),
        (["studies/smoke", "settings.learner.lrr=1"], "unknown key 'learner.lrr'"),
        (["studies/smoke", "families.euclid.model=euclid"], "families.euclid: unknown model 'euclid'"),
        (["studies/smoke", "--ray-address", "127.0.0.1:1"], "add --backend ray"),
    ],
)
def test_mistakes(arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from qrl.scripts.sweep_agents import main

    assert main([*arguments, f"out={tmp_path / 'out'}"]) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed: pip install 'qrl[ray]'")


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """The address of a Ray instance of its own, with a token that the sweeps here find in the environment."""
    program = (
        "import ray, sys; made = ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)\n"
        "print(made.address_info['gcs_address'], flush=True); sys.stdin.read()"
    )
    pipe = subprocess.PIPE
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_MODE", "token")
        patch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
        command = [sys.executable, "-c", program]
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True) as process:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
            process.communicate()


@needs_ray
def test_ray_gives_the_same_results(undisturbed: Path, cluster: str, tmp_path: Path) -> None:
    run = sweep(*SMALL, "out=results", "--backend", "ray", "--ray-address", cluster, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert "jobs 2, threads 1" in run.stdout
    assert_same_results(undisturbed, tmp_path / "results")
    run = sweep(*SMALL, "out=results", "--dry-run", cwd=tmp_path)
    assert "2 of 2 complete" in run.stdout


@needs_ray
def test_a_dying_ray_worker_is_named(cluster: str, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(PLUGIN)
    (tmp_path / "study.yaml").write_text(STUDY)
    arguments = ["study.yaml", "out=results", "--plugin", "own", "--backend", "ray", "--ray-address", cluster]
    run = sweep(*arguments, cwd=tmp_path)
    assert run.returncode == 1, run.stderr
    assert "dies__20__seed0: its worker process died" in run.stdout + run.stderr


@needs_ray
def test_an_unreachable_cluster(tmp_path: Path) -> None:
    run = sweep(*SMALL, "out=results", "--backend", "ray", "--ray-address", "127.0.0.1:1", cwd=tmp_path)
    assert run.returncode == 2
    assert "no Ray cluster answers at 127.0.0.1:1" in run.stderr
    assert not list(tmp_path.iterdir())


GRAPHS = """
command: train-graph
config: graphs/random-quick
settings: {model.width: 16, model.latent_size: 8, graph.nodes: 30, learner: {min_steps: 30, epochs: 0.01}, compile: off}
axis: {graph.fraction: [0.1, 0.6]}
worlds: {sparse: {graph.kind: random-sparse}, block: {graph.kind: random-block}}
seeds: [0, 1]
families: {iqe-sum: {settings: {model.params.dim_per_component: 4}}, euclidean: {}}
claims: [{text: metrics fit worse, more: [euclidean], than: [iqe-sum], worlds: [block], at: [0.6]}]
"""


def test_a_study_of_graphs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "study.yaml").write_text(GRAPHS)
    run = sweep("study.yaml", "out=results", cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    found = rows(tmp_path / "results")
    assert len(found) == 2 * 2 * 2 * 2
    assert {row.status for row in found} == {"complete"}
    assert all(0 < (row.numbers["mse"] or 0) < 1 for row in found)
    assert {row.place for row in found} == {(world, value) for world in ("sparse", "block") for value in (0.1, 0.6)}
    assert len(list((tmp_path / "results" / "data").glob("*.npz"))) == 2 * 2 * 2
    assert report([str(tmp_path / "results")]) == 0
    out = capsys.readouterr().out
    assert "## block, fraction 0.6" in out
    assert "| metrics fit worse (MSE) | euclidean at 0.6, block |" in out
