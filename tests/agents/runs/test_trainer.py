"""A learner built from settings and data, saved and restored. Refused checkpoints are in test_bad_runs."""

import resource
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from qrl.agents.errors import CheckpointError, TrainingError
from qrl.agents.runs.checkpoint import load_checkpoint
from qrl.agents.runs.trainer import Trainer
from qrl.agents.scaling import Scaling
from qrl.envs.graphs.collector import collect_graph
from tests.agents.runs.running import rewrite
from tests.agents.worlds import corridor, graph_settings, small_settings


def test_building_leaves_the_callers_randomness_alone() -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    Trainer.build(small_settings(), corridor())
    assert torch.equal(torch.get_rng_state(), before)


def test_observations_are_scaled_as_the_settings_say() -> None:
    dataset = corridor()
    scaled, plain = (
        Trainer.build(small_settings(learner={"standardize": standardize}), dataset).learner.observations
        for standardize in (True, False)
    )
    assert torch.equal(plain, torch.tensor(dataset.observations))
    varying = plain.std(0) > 1e-6
    torch.testing.assert_close(scaled.mean(0), torch.zeros(18), atol=1e-6, rtol=0)
    torch.testing.assert_close(scaled.std(0, correction=0)[varying], torch.ones(int(varying.sum())))
    scaling = Scaling(torch.ones(18), torch.full((18,), 2.0))
    observations = Trainer.build(small_settings(), dataset, scaling).learner.observations
    torch.testing.assert_close(observations, 2 * (plain - 1))


def test_a_restored_trainer_is_the_saved_one(tmp_path: Path) -> None:
    settings, dataset = small_settings(), corridor()
    trainer = Trainer.build(settings, dataset)
    for _ in range(3):
        trainer.learner.step(log=False)
    trainer.save(tmp_path / "c.safetensors")
    checkpoint, tensors = load_checkpoint(tmp_path / "c.safetensors")
    assert (checkpoint.step, checkpoint.dataset_hash) == (3, dataset.content_hash)
    assert {"observations.mean", "observations.scale"} < tensors.keys()
    restored = Trainer.restore(settings, dataset, tmp_path / "c.safetensors")
    assert restored.score() == trainer.score()
    assert restored.learner.step() == trainer.learner.step()


def test_the_score_does_not_disturb_training() -> None:
    first, second = (Trainer.build(small_settings(), corridor()) for _ in range(2))
    first.score()
    assert first.learner.model.training
    assert first.learner.step() == second.learner.step()


def test_graphs_are_scored_on_validation_pairs_with_running_statistics() -> None:
    settings = graph_settings()
    data = collect_graph(settings.graph)
    trainer = Trainer.build(settings, data)
    for _ in range(5):
        trainer.learner.step(log=False)
    model = trainer.learner.model
    features = torch.tensor(data.features)
    features = (features - features.mean(0)) / features.std(0, correction=0)
    model.eval()
    with torch.no_grad():
        rows = model.encode(features)
        source, target = torch.tensor(data.validation_pairs).long().T
        only_action = torch.zeros_like(source)
        discounted = model.discounted(rows[source], only_action, rows[target], only_action).numpy()
    model.train()
    expected = np.square(discounted - 0.9**data.validation_distances).mean()
    assert trainer.score()["mse"] == pytest.approx(expected, rel=1e-5)
    assert model.training


@pytest.mark.parametrize("kind", ["random-dense", "random-sparse", "random-block"])
def test_quasimetrics_fit_what_metrics_cannot(kind: str) -> None:
    errors = {}
    for name in ("iqe-sum", "euclidean"):
        settings = graph_settings(
            graph={"kind": kind, "nodes": 50, "feature_size": 32},
            model={"name": name, "params": {"hidden_sizes": [64, 64], "latent_size": 32, "batch_norm": False}},
            learner={"batch_size": 256, "min_steps": 400, "lr": 3e-3},
        )
        trainer = Trainer.build(settings, collect_graph(settings.graph))
        for _ in range(trainer.learner.num_steps):
            trainer.learner.step(log=False)
        errors[name] = trainer.score()["mse"]
    assert errors["iqe-sum"] < 0.7 * errors["euclidean"]


def _optimizer_entry(tensors: dict[str, Any], key: str) -> str:
    return next(name for name in tensors if name.startswith(f"optimizer.{key}."))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda _, t: t.update({_optimizer_entry(t, "exp_avg"): torch.zeros(3)}),
            r"optimizer\.exp_avg\..* another shape",
        ),
        (
            lambda _, t: t.update({(name := _optimizer_entry(t, "exp_avg")): t[name].double()}),
            r"optimizer\.exp_avg\..* has another shape or type",
        ),
        (lambda _, t: t.update({_optimizer_entry(t, "step"): torch.tensor(1)}), r"optimizer\.step\..* or type"),
        (lambda _, t: t.pop(_optimizer_entry(t, "exp_avg_sq")), "the state of optimizer is not whole"),
        (lambda _, t: t.update({"optimizer.exp_avg.nothing": torch.zeros(3)}), "nothing"),
        (lambda c, _: c["sampler"]["state"].update(inc=-1), "does not fit"),
        (lambda c, _: c["sampler"]["state"].update(state=2**200), "does not fit"),
        (lambda c, _: c["sampler"].update(has_uint32="x"), "does not fit"),
        (lambda c, _: c["sampler"].update(uinteger=2**40), "does not fit"),
        (lambda c, _: c["sampler"].pop("state"), "does not fit"),
        (lambda c, _: c["sampler"].update(more=1), "the state of its sampler is none of a generator"),
        (lambda c, _: c.update(step=21), r"is at step 21, beyond the 20 steps of its run"),
        (lambda _, t: t.update({"observations.scale": torch.ones(2)}), "observation scaling do not match"),
        (
            lambda _, t: t.update({"observations.mean": torch.ones(1), "observations.scale": torch.ones(1)}),
            "1 features",
        ),
        (lambda _, t: t.update({"target.encoder.0.bias": torch.ones(1)}), "does not fit"),
    ],
)
def test_a_state_that_does_not_fit_names_the_checkpoint(change: Any, message: str, tmp_path: Path) -> None:
    settings, dataset = small_settings(), corridor()
    trainer = Trainer.build(settings, dataset)
    trainer.learner.step(log=False)
    trainer.save(tmp_path / "c.safetensors")
    rewrite(tmp_path / "c.safetensors", change)
    with pytest.raises(CheckpointError, match=rf"c\.safetensors.*{message}"):
        Trainer.restore(settings, dataset, tmp_path / "c.safetensors")


def test_shapes_are_compared_before_memory_is_taken(tmp_path: Path) -> None:
    dataset = corridor()
    Trainer.build(small_settings(), dataset).save(tmp_path / "c.safetensors")
    huge = {"hidden_sizes": [65_536, 65_536, 65_536], "latent_size": 16}
    settings = small_settings(model={"params": huge})
    rewrite(tmp_path / "c.safetensors", lambda content, _: content.update(settings=settings.fixed))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(CheckpointError, match=r"should be torch\.float32 of shape"):
        Trainer.restore(settings, dataset, tmp_path / "c.safetensors")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < before + 2**18  # kilobytes


def test_scaling_that_is_not_finite_is_never_saved(tmp_path: Path) -> None:
    trainer = Trainer.build(small_settings(), corridor())
    trainer.scaling.scale[0] = float("inf")
    with pytest.raises(TrainingError, match=r"observations\.scale is not finite after step 0"):
        trainer.save(tmp_path / "c.safetensors")
