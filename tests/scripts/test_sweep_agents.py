"""sweep-agents, as a user starts, kills and restarts it."""

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

from qrl.agents.studies.folder import StudyFolder
from qrl.agents.studies.study import Study
from qrl.scripts.sweep_agents import main
from tests.agents.studies.hand_made import swept, timeless_rows

STUDY = """
settings:
  collector: {layout: corridor, max_steps: 20}
  model: {width: 8, latent_size: 8}
  learner: {min_steps: 20, epochs: 0.01, batch_size: 16}
  compile: off
  checkpoint_every: 5
families:
  iqe-maxmean: {}
  regularized: {model: dot, grid: {learner.triangle: [0.3, 3]}}
axis: {collector.trajectories: [5]}
seeds: [0]
tuning_seeds: [7]
"""
RUNS = 5


@pytest.fixture(autouse=True)
def signals() -> Iterator[None]:
    """The command handles SIGTERM in its process, which is that of the tests here."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "study.yaml").write_text(STUDY)
    monkeypatch.chdir(tmp_path)
    return "study.yaml"


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same study, computed in this process."""
    folder = tmp_path_factory.mktemp("undisturbed")
    (folder / "study.yaml").write_text(STUDY)
    assert len(swept(Study.load(str(folder / "study.yaml"), []), folder / "results")) == RUNS
    return folder / "results"


def assert_same_results(one: Path, other: Path) -> None:
    assert timeless_rows(one) == timeless_rows(other)
    names = sorted(path.name for path in (one / "runs").iterdir())
    assert names == sorted(path.name for path in (other / "runs").iterdir())
    for name in names:
        first, second = (load_file(study / "runs" / name / "checkpoint.safetensors") for study in (one, other))
        assert all((first[key] == second[key]).all() for key in first)


def test_sigkill_and_restart_give_the_same_results(
    undisturbed: Path, study: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = "import sys; from qrl.scripts.sweep_agents import main; sys.exit(main())"
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-c", program, study, "out=results"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        while not list(tmp_path.glob("results/runs/*/evaluation.json")) and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    results = tmp_path / "results"
    finished = {path: path.stat().st_mtime_ns for path in results.glob("runs/*/evaluation.json")}
    assert 1 <= len(finished) < RUNS
    started = {path.parent for path in results.glob("runs/*/config.yaml")} - {path.parent for path in finished}
    for run in started:
        (run / "mark").touch()  # lost if a run starts again, kept if it is resumed
    assert main([study, "out=results"]) == 0
    assert f"{RUNS} runs in results" in capsys.readouterr().out
    assert all((run / "mark").exists() for run in started)
    assert {path: path.stat().st_mtime_ns for path in finished} == finished, "a finished run was computed twice"
    assert_same_results(undisturbed, results)


def test_a_dry_run_writes_nothing(study: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([study, "out=new", "--dry-run", "--jobs", "1"]) == 0
    out = capsys.readouterr().out
    assert "study: 5 runs" in out
    assert "0 of 4 complete  triangle=0.3 or triangle=3" in out
    assert "to do: runs 1, steps 20," in out
    assert "to do: runs 4, steps 80," in out
    assert "with --jobs 1" in out
    assert [path.name for path in tmp_path.iterdir()] == [study]


def test_a_dry_run_of_what_is_complete(undisturbed: Path, study: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([study, f"out={undisturbed}", "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert "4 of 4 complete" in out
    assert "to do" not in out


def test_a_dry_run_counts_what_would_be_taken_over(
    undisturbed: Path, study: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([study, "out=new", "--from", str(undisturbed), "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert "4 of 4 complete" in out
    assert "to do" not in out
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("dry_run", [["--dry-run"], []])
def test_what_would_be_lost_or_mixed_is_refused_at_once(
    undisturbed: Path, study: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], dry_run: list[str]
) -> None:
    published = tmp_path / "published"
    published.mkdir()
    for name in ("study.yaml", "results.csv"):
        shutil.copy(undisturbed / name, published)
    before = sorted(tmp_path.rglob("*"))
    for words, message in (
        ([study, f"out={published}"], f"results of {RUNS} finished runs"),
        ([study, "out=new", "--from", "nowhere"], "--from nowhere holds no results of a study: it has no study.yaml"),
        ([study, "out=new", "--from", str(published), "seeds=[5]"], "name another folder with --from"),
    ):
        assert main([*words, *dry_run]) == 2
        assert message in capsys.readouterr().err
    assert sorted(tmp_path.rglob("*")) == before


def test_a_dry_run_can_be_interrupted(study: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(learner: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("qrl.agents.studies.estimate.seconds_per_step", interrupt)
    assert main([study, "out=new", "--dry-run"]) == 130


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
"""
DYING = STUDY.replace("  regularized: {model: dot, grid: {learner.triangle: [0.3, 3]}}", "  dies: {}")


@pytest.fixture
def dying(study: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, restored_registry: None) -> Iterator[list[str]]:
    """The arguments of a sweep one of whose runs kills its worker."""
    (tmp_path / study).write_text(DYING)
    (tmp_path / "dying_plugin.py").write_text(PLUGIN)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield [study, "out=results", "--plugin", "dying_plugin"]
    sys.modules.pop("dying_plugin", None)


def assert_named(folder: Path, out: str) -> None:
    assert "1 runs failed" in out
    assert "failed: dies__5__seed0: its worker process died" in out
    assert (folder / "died").read_text() == "xx"  # tried twice
    rows = {row.family: row for row in timeless_rows(folder / "results") if row.purpose == "evaluation"}
    assert {family: row.status for family, row in rows.items()} == {"iqe-maxmean": "complete", "dies": "failed"}


def test_a_dying_worker_is_named_and_stops_no_other_run(
    dying: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*dying, "--jobs", "1"]) == 1
    assert_named(tmp_path, capsys.readouterr().out)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["smok"], "did you mean 'smoke'"),
        (["smoke", "--jobs", "0"], "--jobs must be at least 1"),
        (["smoke", "seeds=[]"], "seeds"),
        (["smoke", "settings.learner.lrr=1"], "unknown key 'learner.lrr'"),
        (["smoke", "families.euclid.model=euclid"], "families.euclid: unknown model 'euclid'"),
        (["smoke", "--ray-address", "127.0.0.1:1"], "--ray-address applies only to --backend ray"),
        (["smoke", "--plugin", "no_such_plugin"], "no_such_plugin"),
    ],
)
def test_mistakes(arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*arguments, f"out={tmp_path / 'out'}"]) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("module", ["sweep_agents", "report_sweep"])
def test_nothing_heavy_is_imported_before_an_interrupt_is_handled(module: str) -> None:
    program = f"import sys, qrl.scripts.{module}; sys.exit(bool({{'numpy', 'pydantic', 'torch'}} & set(sys.modules)))"
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    assert subprocess.run([sys.executable, "-c", program], env=environment, check=False).returncode == 0


# On a Ray cluster

needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed: pip install -e '.[ray]'")


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """The address of a new Ray cluster, with a token that the sweeps here find in the environment."""
    program = (
        "import ray, sys; context = ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)\n"
        "print(context.address_info['gcs_address'], flush=True); sys.stdin.read()"
    )
    pipe = subprocess.PIPE
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_MODE", "token")
        patch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
        patch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))  # of the workers
        command = [sys.executable, "-c", program]
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True) as process:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
            process.communicate()


@needs_ray
def test_ray_gives_the_same_results(
    undisturbed: Path, cluster: str, study: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([study, "out=results", "--backend", "ray", "--ray-address", cluster]) == 0
    assert "jobs 1, threads 1" in capsys.readouterr().out
    assert_same_results(undisturbed, tmp_path / "results")
    folder = StudyFolder(tmp_path / "results")
    assert main([study, f"out={folder.path}", "--dry-run"]) == 0
    assert "4 of 4 complete" in capsys.readouterr().out


@needs_ray
def test_a_dying_ray_worker_is_named(
    cluster: str, dying: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*dying, "--backend", "ray", "--ray-address", cluster]) == 1
    assert_named(tmp_path, capsys.readouterr().out)


@needs_ray
def test_an_unreachable_cluster(study: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([study, "out=results", "--backend", "ray", "--ray-address", "127.0.0.1:1"]) == 2
    assert "no Ray cluster answers at 127.0.0.1:1" in capsys.readouterr().err
    assert not (tmp_path / "results").exists()
