"""Sweeps, in this process."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from qrl.agents.errors import RunError
from qrl.agents.evaluation.metrics import register_metric
from qrl.agents.runs.run import Run
from qrl.agents.studies.curves import read_curves
from qrl.agents.studies.folder import StudyFolder
from qrl.agents.studies.sweep import check_models, sweep
from qrl.agents.studies.table import read_rows
from qrl.agents.studies.worker import Job
from qrl.common.config_files import dump_yaml, read_config
from qrl.common.errors import ConfigError, FileError, RegistryError
from qrl.envs.errors import WorldError
from tests.agents.studies.hand_made import TINY, TINY_GRAPHS, InlineBackend, swept, timeless_rows, tiny

RUN = "iqe-maxmean__5__seed0"


@pytest.mark.parametrize(
    ("family", "message"),
    [
        ({"iqe-maxmen": {}}, "families.iqe-maxmen.*did you mean 'iqe-maxmean'"),
        ({"iqe-sum": {"settings": {"model.params.latent": 3}}}, "families.iqe-sum.*unknown key 'latent'"),
    ],
)
def test_unknown_models_and_parameters(family: dict[str, Any], message: str) -> None:
    with pytest.raises((ConfigError, RegistryError), match=message):
        check_models(tiny(families=family))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished sweep of one run. Only to be looked at, or copied."""
    path = tmp_path_factory.mktemp("sweep") / "results"
    assert len(swept(tiny(), path)) == 1
    return path


@pytest.fixture
def copy(finished: Path, tmp_path: Path) -> Path:
    return shutil.copytree(finished, tmp_path / "results")


def test_a_sweep_leaves_ordinary_runs(tmp_path: Path) -> None:
    families = {"iqe-maxmean": {}, "regularized": {"model": "dot", "grid": {"learner.triangle": [1, 3]}}}
    swept(tiny(families=families, seeds=[0, 1], tuning_seeds=[7]), tmp_path)
    rows = timeless_rows(tmp_path)
    assert {row.status for row in rows} == {"complete"}
    assert {row.purpose for row in rows} == {"reference", "evaluation", "tuning"}
    runs = [row for row in rows if row.purpose != "reference"]
    assert len(runs) == 2 + 3 * 2
    assert {row.seed for row in runs if row.purpose == "evaluation"} == {0, 1}
    assert {row.steps for row in runs} == {6}
    assert len({row.scores["signed_error"] for row in runs}) == len(runs)
    for name in ("config.yaml", "metrics.csv", "COMPLETE", "checkpoint.safetensors", "evaluation.json"):
        assert (tmp_path / "runs" / RUN / name).is_file()


def test_finished_runs_are_skipped(copy: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (copy / "runs").rglob("*")}
    assert swept(tiny(), copy) == []
    assert {path: path.stat().st_mtime_ns for path in (copy / "runs").rglob("*")} == before


def test_damaged_results_are_computed_again(finished: Path, copy: Path) -> None:
    (copy / "runs" / RUN / "evaluation.json").write_text("{")
    assert len(swept(tiny(), copy)) == 1
    assert timeless_rows(copy) == timeless_rows(finished)


def test_runs_with_other_settings_are_refused(copy: Path) -> None:
    config = copy / "runs" / RUN / "config.yaml"
    config.write_text(config.read_text().replace("min_steps: 6", "min_steps: 5"))
    with pytest.raises(RunError, match=r"learner.min_steps was 5, now 6"):
        swept(tiny(), copy)


def test_runs_of_earlier_releases_are_continued(finished: Path, copy: Path) -> None:
    config, facts = copy / "runs" / RUN / "config.yaml", copy / "runs" / RUN / "run.json"
    values = read_config(str(config))
    del values["checkpoint_keep"]  # a key that release 0.2 did not have
    config.write_text(dump_yaml(values))
    kept = {key: value for key, value in json.loads(facts.read_text()).items() if key in ("model_origin", "num_steps")}
    facts.write_text(json.dumps(kept))
    assert swept(tiny(), copy) == []
    (copy / "runs" / RUN / "evaluation.json").unlink()
    assert len(swept(tiny(), copy)) == 1
    assert timeless_rows(copy) == timeless_rows(finished)


def test_a_study_may_be_moved(finished: Path, copy: Path) -> None:
    moved = copy.rename(copy.with_name("moved"))
    assert swept(tiny(), moved) == []
    (moved / "runs" / RUN / "evaluation.json").unlink()
    assert len(swept(tiny(), moved)) == 1
    assert timeless_rows(moved) == timeless_rows(finished)
    dataset = Run.open(moved / "runs" / RUN).settings.dataset
    assert Path(dataset).parent == moved / "data"  # the one beside it, although the original exists


def test_the_world_may_be_a_file(tmp_path: Path) -> None:
    """A run records what its data was made from, which is not what the plan asked for."""
    layout = tmp_path / "my-world.txt"
    layout.write_text((Path(__file__).parents[3] / "envs" / "layouts" / "corridor.txt").read_text())
    plan = tiny(settings=TINY["settings"] | {"collector": {"layout": str(layout), "max_steps": 20}})
    assert len(swept(plan, tmp_path / "results")) == 1
    assert swept(plan, tmp_path / "results") == []
    text = layout.read_text()
    layout.write_text(text.replace(".", "S", 1))
    with pytest.raises(ConfigError, match=r"my-world\.txt has changed since .*\.npz was collected in it; put it back"):
        swept(plan, tmp_path / "results")
    layout.unlink()  # no longer needed
    assert swept(plan, tmp_path / "results") == []


def test_a_world_too_large_for_a_study_is_refused_before_anything_is_trained(tmp_path: Path) -> None:
    collector = {"world": {"name": "maze", "size": 91}, "max_steps": 5}
    with pytest.raises(WorldError, match=r"world maze-91 has 4,\d+ states: a study plans all tasks, .* at most 4,000"):
        swept(tiny(settings=TINY["settings"] | {"collector": collector}), tmp_path)
    assert not list((tmp_path / "data").glob("*"))


def test_data_of_runs_that_are_taken_over_is_not_collected(tmp_path: Path) -> None:
    families = {"dot": {"grid": {"learner.triangle": [1, 3]}}}
    settings: dict[str, Any] = {"seeds": [0], "tuning_seeds": [7], "families": families}
    swept(tiny(**settings), tmp_path / "first")
    assert len(list((tmp_path / "first" / "data").glob("*.npz"))) == 2
    assert swept(tiny(**settings), tmp_path / "second", source=tmp_path / "first") == []
    assert len(list((tmp_path / "second" / "data").glob("*.npz"))) == 1  # for the references


class FailingBackend(InlineBackend):
    def _run(self, job: Job) -> str | None:
        self.attempted.append(job)
        return "no memory\nTraceback ..."


def test_a_failed_run_is_tried_twice_and_again_by_the_next_sweep(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, backend = StudyFolder(tmp_path), FailingBackend()
    assert sweep(tiny(), folder, backend) == 1
    assert len(backend.attempted) == 2
    assert f"failed: {RUN}: no memory" in capsys.readouterr().out
    (row,) = (row for row in read_rows(folder.results) if row.purpose == "evaluation")
    assert (row.status, row.error) == ("failed", "no memory")
    assert len(swept(tiny(), tmp_path)) == 1
    assert folder.failure(tiny().runs[0]) is None


def test_progress_is_shown_while_runs_take_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("qrl.common.progress.PLAIN_SECONDS", 0.001)
    swept(tiny(), tmp_path)
    assert "0 of 1 runs; time left unknown" in capsys.readouterr().err


@pytest.mark.usefixtures("plugin_metrics")
def test_a_plugins_metric_is_a_column(copy: Path, tmp_path: Path) -> None:
    register_metric("luck.mean", title="luck", help="how lucky it was")(lambda measurements: 0.125)
    swept(tiny(), tmp_path / "new")
    assert {row.scores["luck_mean"] for row in read_rows(tmp_path / "new" / "results.csv")} == {0.125}
    swept(tiny(), copy)  # runs evaluated before have no value
    assert (copy / "results.csv").read_text().splitlines()[0].endswith(",luck_mean")


def test_a_table_with_a_plugins_metric_needs_the_plugin(copy: Path) -> None:
    table = copy / "results.csv"
    text = "\n".join(f"{line},{'luck' if number == 0 else 1}" for number, line in enumerate(table.read_text().split()))
    table.write_text(text)
    with pytest.raises(FileError, match=r"column luck, which is not a registered metric"):
        swept(tiny(), copy)
    assert table.read_text() == text


def test_a_study_of_graphs(tmp_path: Path) -> None:
    plan = tiny(
        TINY_GRAPHS,
        axis={"graph.fraction": [0.1, 0.6]},
        worlds={"sparse": {"graph.pairs": 9}, "block": {"graph.kind": "random-block", "graph.nodes": 30}},
        seeds=[0, 1],
    )
    assert len(swept(plan, tmp_path)) == 2 * 2 * 2
    rows = read_rows(tmp_path / "results.csv")
    assert {row.status for row in rows} == {"complete"}
    assert {row.condition for row in rows} == {(world, size) for world in ("sparse", "block") for size in (0.1, 0.6)}
    assert len({row.scores["mse"] for row in rows}) == 2 * 2 * 2
    assert len(list((tmp_path / "data").glob("*.npz"))) == 2 * 2 * 2
    assert swept(plan, tmp_path) == []  # also where settings, such as graph.pairs, are not used


def test_finished_runs_of_published_results_are_taken_over(tmp_path: Path) -> None:
    evaluated = TINY["settings"] | {"evaluate_every": 4}
    small, grown = tiny(seeds=[0], settings=evaluated), tiny(seeds=[0, 1], settings=evaluated)
    swept(small, tmp_path / "first")
    published = tmp_path / "published"
    published.mkdir()
    for name in ("study.yaml", "results.csv", "curves.csv"):
        shutil.copy(tmp_path / "first" / name, published)
    jobs = swept(grown, tmp_path / "second", source=published)
    assert [Path(job.settings["run"]).name for job in jobs] == ["iqe-maxmean__5__seed1"]
    swept(grown, tmp_path / "afresh")
    assert timeless_rows(tmp_path / "second") == timeless_rows(tmp_path / "afresh")
    curves = {row["seed"]: row for row in read_curves(tmp_path / "second" / "curves.csv")}
    assert list(curves) == ["0", "1"]
    assert curves["0"] in read_curves(published / "curves.csv")
    assert swept(grown, tmp_path / "second") == []  # without naming them again


def test_tables_without_runs_are_not_overwritten(finished: Path, tmp_path: Path) -> None:
    published = tmp_path / "published"
    published.mkdir()
    for name in ("study.yaml", "results.csv"):
        shutil.copy(finished / name, published)
    (published / "runs").mkdir()
    before = (published / "results.csv").read_bytes()
    lost = r"results of 1 finished run, such as .*, would be lost; compute in another folder, with out="
    other_settings = TINY["settings"] | {"learner.lr": 0.125}
    for plan in (tiny(), tiny(seeds=[1]), tiny(settings=other_settings)):
        with pytest.raises(RunError, match=lost):
            swept(plan, published)
    assert (published / "results.csv").read_bytes() == before
    assert swept(tiny(), published, source=published) == []  # named as their own source, they are kept
    assert timeless_rows(published) == timeless_rows(finished)


def test_what_was_taken_over_is_not_lost_to_another_source(tmp_path: Path) -> None:
    for seed in (0, 1):
        swept(tiny(seeds=[seed]), tmp_path / str(seed))
    both = tiny(seeds=[0, 1, 2])
    assert len(swept(both, tmp_path / "both", source=tmp_path / "0")) == 2
    shutil.rmtree(tmp_path / "both" / "runs" / "iqe-maxmean__5__seed1")
    lost = r"results of 1 finished run, such as iqe-maxmean__5__seed0, would be lost; --from .* lacks them"
    with pytest.raises(RunError, match=lost):
        swept(both, tmp_path / "both", source=tmp_path / "1")
    assert len(swept(both, tmp_path / "both")) == 1  # a deleted run is computed again
    assert {row.status for row in read_rows(tmp_path / "both" / "results.csv")} == {"complete"}


def test_results_of_another_study_are_not_taken_over(finished: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"holds another study: it has the run iqe-maxmean__5__seed0.*--from"):
        swept(tiny(seeds=[1]), tmp_path / "second", source=finished)
    (tmp_path / "published").mkdir()
    shutil.copy(finished / "study.yaml", tmp_path / "published")
    with pytest.raises(RunError, match=r"--from .*published holds no results of a study: it has no results\.csv"):
        swept(tiny(), tmp_path / "second", source=tmp_path / "published")
    assert {path.name for path in (tmp_path / "second").iterdir()} == {".lock"}


def test_a_source_with_a_plugins_metric_needs_the_plugin(copy: Path, tmp_path: Path) -> None:
    table = copy / "results.csv"
    lines = table.read_text().splitlines()
    table.write_text("\n".join(f"{line},{'luck' if number == 0 else 1}" for number, line in enumerate(lines)))
    with pytest.raises(FileError, match=r"column luck, which is not a registered metric"):
        swept(tiny(), tmp_path / "second", source=copy)


def test_curves_survive_a_source_without_them(tmp_path: Path) -> None:
    plan = tiny(settings=TINY["settings"] | {"evaluate_every": 4})
    swept(plan, tmp_path / "first")
    swept(plan, tmp_path / "second", source=tmp_path / "first")
    curves = (tmp_path / "second" / "curves.csv").read_bytes()
    assert curves == (tmp_path / "first" / "curves.csv").read_bytes()
    assert curves.count(b"\n") > 1
    swept(plan, tmp_path / "second", source=tmp_path / "second" / "earlier")  # its own copy as the source
    (tmp_path / "first" / "curves.csv").unlink()
    swept(plan, tmp_path / "second", source=tmp_path / "first")
    assert (tmp_path / "second" / "curves.csv").read_bytes() == curves


def test_a_sweep_without_results_leaves_the_plan_open(tmp_path: Path) -> None:
    assert sweep(tiny(), StudyFolder(tmp_path), FailingBackend()) == 1
    assert len(swept(tiny(seeds=[1]), tmp_path)) == 1
