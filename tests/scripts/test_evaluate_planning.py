"""evaluate-planning as a user calls it."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import qrl
from qrl.agents.evaluation.axioms import Axioms
from qrl.agents.planning.agent import Agent
from qrl.agents.runs.run import Run
from qrl.envs.dataset import Dataset
from qrl.envs.ground_truth import ground_truth
from qrl.envs.layout import load_layout
from qrl.scripts.evaluate_planning import main as evaluate_planning
from tests.agents.runs.running import finish
from tests.agents.worlds import corridor, other_notices, ring_data, small_settings, without_layout


@pytest.fixture
def run(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the trained run in the working directory, which holds nothing else; there is no display."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("MPLBACKEND", raising=False)
    return Path(shutil.copytree(trained, "iqe"))


def test_everything_at_once(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outputs = ["--json", "out/r.json", "--pictures", "out", "--gif", "out/task.gif"]
    assert evaluate_planning([str(run), *outputs]) == 0
    captured = capsys.readouterr()
    assert other_notices(captured.err.splitlines()) == []
    table = captured.out.splitlines()
    assert table[0].split() == ["iqe", "oracle", "random", "empirical-graph"]
    pictures = {f"{name}.{kind}" for name in ("distance-map", "estimates", "success") for kind in ("png", "pdf", "svg")}
    assert set(os.listdir("out")) == {"r.json", "task.gif", *pictures}
    results = json.loads(Path("out/r.json").read_text())
    assert f"{results['success_rate']:.3f}" == table[1].split()[2]
    assert results["references"]["oracle"]["success_rate"] == results["references"]["oracle"]["spl"] == 1
    assert (results["model"], results["step"], results["complete"]) == ("iqe-maxmean", 300, True)
    events = EventAccumulator(str(run / "tensorboard")).Reload()
    (event,) = events.Tensors("evaluation/exhaustive")
    assert event.step == 300
    assert f"{results['success_rate']:.3f}" in event.tensor_proto.string_val[0].decode()
    # Up to ties, the exhaustive score is the one that training reported at its end.
    assert results["success_rate"] == pytest.approx(
        json.loads((run / "COMPLETE").read_text())["success_rate"], abs=0.01
    )


def test_the_same_call_gives_the_same_results(run: Path) -> None:
    for name in ("a.json", "b.json"):
        assert evaluate_planning([str(run), "--protocol", "paper", "--episodes", "20", "--json", name]) == 0
    assert Path("a.json").read_bytes() == Path("b.json").read_bytes()
    content = json.loads(Path("a.json").read_text())
    low, high = content["success_interval"]
    assert 0 <= low < content["success_rate"] < high <= 1


@pytest.mark.parametrize("reference", ["oracle", "random", "empirical-graph"])
def test_references_alone(run: Path, reference: str, capsys: pytest.CaptureFixture[str]) -> None:
    dataset = str(run / "dataset.npz")
    assert evaluate_planning(["--reference", reference, "--dataset", dataset, "--json", "r.json"]) == 0
    assert capsys.readouterr().out.split()[0] == reference
    content = json.loads(Path("r.json").read_text())
    assert (content["name"], content["run"]) == (reference, None)
    assert set(content["references"]) == {"oracle", "random", "empirical-graph"} - {reference}


def test_an_incomplete_run_is_noted(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run / "COMPLETE").unlink()
    assert evaluate_planning([str(run), "--json", "r.json"]) == 0
    assert "note: iqe is not complete: this is its checkpoint at step 300 of 300" in capsys.readouterr().err
    assert json.loads(Path("r.json").read_text())["complete"] is False


def test_another_checkpoint(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.move(run / "checkpoint.safetensors", "old.safetensors")
    assert evaluate_planning([str(run)]) == 2
    assert "checkpoint.safetensors cannot be read" in capsys.readouterr().err
    assert evaluate_planning([str(run), "--checkpoint", "old.safetensors"]) == 0


def test_a_checkpoint_of_another_run(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Run.start(small_settings(Path("other"), seed=5))
    assert evaluate_planning([str(run), "--checkpoint", "other/checkpoint.safetensors"]) == 2
    assert "other/checkpoint.safetensors does not belong to iqe: " in capsys.readouterr().err


def test_only_a_run_on_its_own_is_logged(run: Path) -> None:
    before = sorted((run / "tensorboard").iterdir())
    assert evaluate_planning([str(run), "--dataset", str(run / "dataset.npz")]) == 0
    assert sorted((run / "tensorboard").iterdir()) == before


def test_a_tensorboard_that_cannot_be_written(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(run / "tensorboard")
    (run / "tensorboard").write_text("a file")
    assert evaluate_planning([str(run), "--json", "r.json"]) == 2
    captured = capsys.readouterr()
    assert "error: iqe/tensorboard cannot be written" in captured.err
    assert "success rate" in captured.out  # the results are printed nevertheless
    assert Path("r.json").exists()


def test_a_run_with_the_name_of_a_reference(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.move(run, "oracle")
    assert evaluate_planning(["oracle"]) == 0
    assert capsys.readouterr().out.splitlines()[0].split() == ["oracle", "(run)", "oracle", "random", "empirical-graph"]


def test_a_dataset_elsewhere_or_changed(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.move(run / "dataset.npz", "moved.npz")
    assert evaluate_planning([str(run)]) == 2
    assert (
        "iqe/dataset.npz, the dataset of iqe, is missing; put it back, or give its new path" in capsys.readouterr().err
    )
    assert evaluate_planning([str(run), "--dataset", "moved.npz"]) == 0
    assert other_notices(capsys.readouterr().err.splitlines()) == []
    corridor(3, "traps").save(run / "dataset.npz")
    assert evaluate_planning([str(run)]) == 2
    assert "iqe/dataset.npz has changed since iqe was trained on it" in capsys.readouterr().err
    assert evaluate_planning([str(run), "--dataset", str(run / "dataset.npz")]) == 0
    assert "was trained on other data" in capsys.readouterr().err


def test_data_without_a_layout(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    without_layout(Dataset.load(run / "dataset.npz")).save("mine.npz")
    assert evaluate_planning([str(run), "--dataset", "mine.npz", "--json", "r.json"]) == 0
    captured = capsys.readouterr()
    assert "note: the dataset has no world: nothing is compared with exact distances" in captured.err
    assert "note: there is no world to plan in; evaluate-planning --env" in captured.err
    assert "triangle violations" in captured.out
    assert json.loads(Path("r.json").read_text())["success_rate"] is None
    env = "qrl.envs:qrl/OneWayDoors-v0"
    arguments = [str(run), "--dataset", "mine.npz", "--env", env, "--episodes", "2", "--gif", "a.gif"]
    assert evaluate_planning(arguments) == 0
    assert Path("a.gif").exists()
    assert evaluate_planning([str(run), "--dataset", "mine.npz", "--gif", "b.gif"]) == 2
    assert capsys.readouterr().err.endswith(
        "error: there is no world to show; evaluate-planning --env plans in an environment of yours\n"
    )
    assert not Path("b.gif").exists()


def test_pictures_without_a_layout(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of trajectories that the run was not trained on, here all of another file."""
    without_layout(Dataset.load(run / "dataset.npz")).save("mine.npz")
    assert evaluate_planning([str(run), "--dataset", "mine.npz", "--pictures", "p"]) == 0
    captured = capsys.readouterr()
    assert sorted(path.name for path in Path("p").iterdir()) == [
        f"{name}.{kind}" for name in ("hindsight", "lengths") for kind in ("pdf", "png", "svg")
    ]
    assert "wrote p/hindsight.png" in captured.out
    assert "hindsight consistency" in captured.out
    assert f"note: {run} was trained on other data than mine.npz" in captured.err


def test_pictures_of_nothing_are_refused_before_anything_is_computed(
    run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = without_layout(Dataset.load(run / "dataset.npz"))
    Run.start(small_settings(Path("own"), validation=0), dataset=mine)

    def computed(*_: object) -> None:
        raise AssertionError("something was computed")

    monkeypatch.setattr(Agent, "all_costs", computed)
    assert evaluate_planning(["own", "--json", "r.json", "--pictures", "p"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == (
        "error: --pictures: there is nothing to draw, because the dataset has no world and nothing is held out; leave "
        "it out\n"
    )
    assert not Path("p").exists()
    assert not Path("r.json").exists()


def test_a_reference_in_an_environment_of_ones_own(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ring_data().save("ring.npz")
    arguments = ["--reference", "empirical-graph", "--dataset", "ring.npz", "--env", "tests.agents.goal_envs:Ring-v0"]
    assert evaluate_planning(arguments) == 0
    assert "1.000 (0.93-1.00)" in capsys.readouterr().out
    assert evaluate_planning([*arguments, "--gif", "a.gif"]) == 2
    assert "cannot be made" in capsys.readouterr().err  # with frames


def test_an_environment_in_the_working_directory(
    run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("my_env.py").write_text(
        "import gymnasium\ngymnasium.register('MyOwnRing-v0', entry_point='tests.agents.goal_envs:Ring')\n"
    )
    working_directory = str(Path.cwd())
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry not in ("", working_directory)])
    ring_data().save("ring.npz")
    reference = ["--reference", "random", "--dataset", "ring.npz"]
    assert evaluate_planning([*reference, "--env", "my_env:MyOwnRing-v0", "--episodes", "3", "--json", "r.json"]) == 0
    assert json.loads(Path("r.json").read_text())["tasks"] == 3


def test_a_kept_checkpoint(run: Path) -> None:
    settings = small_settings(Path("kept"), checkpoint_keep=1, dataset=str(run / "dataset.npz"))
    for _ in Run.start(settings).train():
        pass
    checkpoint = "kept/checkpoints/step-00000005.safetensors"
    assert evaluate_planning(["kept", "--checkpoint", checkpoint, "--json", "r.json"]) == 0
    content = json.loads(Path("r.json").read_text())
    assert (content["step"], content["run"]) == (5, "kept")
    events = EventAccumulator("kept/tensorboard").Reload()  # only the last checkpoint is logged
    assert events.Tags()["tensors"] == []


def test_a_declared_quasimetric_that_is_none(
    run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = Axioms(0.25, 3.0, 0.0, None, None)
    monkeypatch.setattr("qrl.agents.evaluation.measurements.measure_axioms", lambda *_: measured)
    assert evaluate_planning([str(run), "--json", "r.json"]) == 0
    notice = "iqe declares guaranteed_quasimetric but violates the triangle inequality in 25.0% of random triples"
    assert f"note: {notice}\n" in capsys.readouterr().err
    assert other_notices(json.loads(Path("r.json").read_text())["notices"]) == [notice]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name either the folder of a training run or --reference"),
        (["iqe", "--reference", "oracle"], "name either"),
        (["--reference", "oracle"], "name it with --dataset"),
        (["--reference", "oracle", "--dataset", "d.npz", "--checkpoint", "c"], "leave them out"),
        (["--reference", "oracle", "--dataset", "d.npz", "--world", "split=test"], "leave them out"),
        (["iqe", "--world", "split=test"], "--world changes the parameters of a registered world"),
        (["nowhere"], "nowhere is not a training run"),
        (["iqe/tensorboard"], "is not a training run"),
        (["iqe", "--dataset", "nowhere.npz"], "nowhere.npz"),
        (["iqe", "--json", "precious.json"], "precious.json exists already"),
        (["iqe", "--json", "r.txt"], "must end in .json"),
        (["iqe", "--gif", "r.png"], "must end in .gif"),
        (["iqe", "--pictures", "precious.json"], "is not a folder"),
        (["iqe", "--episodes", "3"], "needs the paper's protocol"),
        (["iqe", "--start", "1,1"], "--start applies only to the GIF"),
        (["iqe", "--goal", "1,1"], "--goal applies only to pictures"),
        (["iqe", "--gif", "a.gif", "--start", "1,1", "--goal", "1,1", "--json", "r.json"], "start and goal are both"),
        (["iqe", "--gif", "a.gif", "--env", "qrl.envs:qrl/OneWayDoors-v0", "--goal", "1,1"], "draws its tasks itself"),
        (["iqe", "--seed", "-1"], "--seed must be at least 0"),
        (["iqe", "--env", "Nowhere-v0"], "the environment Nowhere-v0 cannot be made"),
        (["iqe", "--env", "CartPole-v1"], "has 2 actions, but the data has 4"),
        (["iqe", "--gif", "a.gif", "--goal", "0,0"], "(0, 0) is a wall"),
        (["iqe", "--plugin", "no_such_plugin"], "the plugin no_such_plugin could not be loaded"),
    ],
)
def test_mistakes_are_reported_and_leave_nothing(
    run: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("precious.json").write_text("precious")
    assert evaluate_planning(arguments) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("error: ")
    assert message in captured.err
    assert sorted(os.listdir()) == ["iqe", "precious.json"]
    assert Path("precious.json").read_text() == "precious"


@pytest.mark.parametrize(
    "arguments", [["iqe", "--protocol", "papr"], ["--reference", "oracel"], ["iqe", "--goal", "3"]]
)
def test_mistakes_that_the_parser_finds(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        evaluate_planning(arguments)
    assert exit_.value.code == 2
    assert "invalid" in capsys.readouterr().err


def test_an_unreachable_goal(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    truth = ground_truth(load_layout("traps"))
    (start, goal), *_ = [
        (truth.layout.cells[s], truth.layout.cells[g])
        for s in range(len(truth.distances))
        for g in range(len(truth.distances))
        if truth.distances[s, g] == float("inf")
    ]
    task = ["--start", ",".join(map(str, start)), "--goal", ",".join(map(str, goal))]
    assert evaluate_planning([str(run), "--gif", "a.gif", "--pictures", "p", *task]) == 0
    assert "a.gif: success" not in capsys.readouterr().out


def test_outputs_are_overwritten_when_asked(run: Path) -> None:
    Path("r.json").write_text("old")
    assert evaluate_planning([str(run), "--json", "r.json", "--force"]) == 0
    assert "success_rate" in json.loads(Path("r.json").read_text())


def test_a_held_out_part_of_the_world(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of three configurations of two doors, one is learned from: the data knows no state of the others."""
    monkeypatch.chdir(tmp_path)
    doors = "######\n#SG>G#\n#SG>G#\n######"
    world = {"name": "unseen-doors", "layout": doors, "configurations": 1, "held_out": 2}
    dataset = qrl.collect(world=world, trajectories=20)
    run = Run.start(small_settings(tmp_path / "run"), dataset=dataset)
    finish(run)
    arguments = ["run", "--json", "r.json", "--force"]
    assert evaluate_planning(arguments) == 0
    own = json.loads(Path("r.json").read_text())
    assert own["references"]["empirical-graph"]["success_rate"] == 1
    assert evaluate_planning([*arguments, "--world", "split=test"]) == 0
    notes = capsys.readouterr().err
    assert "was trained in another world than the one with split=test" in notes
    assert "the data contains no state of this world: the empirical graph acts at random" in notes
    held_out = json.loads(Path("r.json").read_text())
    assert held_out["tasks"] == 2 * own["tasks"]
    assert own["all_pairs"]["seen"]["tasks"] > 0
    assert held_out["all_pairs"]["seen"] is None  # what was seen was in another world
    assert held_out["references"]["oracle"]["success_rate"] == 1
    references = held_out["references"]
    assert references["empirical-graph"]["success_rate"] == references["random"]["success_rate"]
    assert qrl.evaluate(run, world={"split": "test"}).success_rate == held_out["success_rate"]
    # Two configurations, of which the data knows one.
    assert evaluate_planning([*arguments, "--world", "configurations=2", "--world", "held_out=1"]) == 0
    known = json.loads(Path("r.json").read_text())["references"]["empirical-graph"]["success_rate"]
    assert 0.5 <= known < 1
