"""A learner built from settings and data, saved and restored. Refused checkpoints are in test_bad_runs."""

from pathlib import Path

import numpy as np
import pytest
import torch

from qrl.agents.errors import CheckpointError
from qrl.agents.runs.checkpoint import load_checkpoint
from qrl.agents.runs.trainer import Trainer
from qrl.agents.scaling import Scaling
from qrl.envs.graphs.collector import collect_graph
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


def test_an_optimizer_of_another_shape_names_the_checkpoint(tmp_path: Path) -> None:
    settings, dataset = small_settings(), corridor()
    trainer = Trainer.build(settings, dataset)
    trainer.learner.step(log=False)
    parameter = next(trainer.learner.model.parameters())
    trainer.learner.optimizer.state[parameter]["exp_avg"] = torch.zeros(3)
    trainer.save(tmp_path / "c.safetensors")
    with pytest.raises(CheckpointError, match=r"c\.safetensors does not fit the model iqe-maxmean: the optimizer's"):
        Trainer.restore(settings, dataset, tmp_path / "c.safetensors")
