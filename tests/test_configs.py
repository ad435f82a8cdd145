"""Every built-in config is valid for its command."""

from pathlib import Path

import pytest

from qrl import QModelSpec
from qrl.agents.learners.settings import MboldSettings
from qrl.agents.runs.model import build_model
from qrl.agents.runs.settings import GraphTrainSettings, TrainSettings
from qrl.agents.studies.study import Study
from qrl.agents.studies.sweep import check_models
from qrl.catalog import count_parameters
from qrl.envs.collector import CollectorSettings
from qrl.q_models import LatentQModel
from qrl.readouts import READOUTS
from qrl.registry import find

DATA, CONFIGS, GRAPHS, STUDIES = (
    sorted(path.stem for path in (Path(__file__).parents[1] / "configs" / folder).glob("*.yaml"))
    for folder in ("data", "train", "graphs", "studies")
)


@pytest.mark.parametrize("name", CONFIGS)
def test_training_configs(name: str) -> None:
    settings = TrainSettings.load(name)
    find(settings.model.name).parameters.from_values(settings.model.params, name)
    if name.startswith("paper"):
        learner = settings.learner
        assert (learner.epochs, learner.batch_size, learner.lr, learner.discount) == (100, 1024, 1e-4, 0.95)
        assert learner.num_steps(47_000) == 4600
        assert settings.model.width == 2048
        assert settings.model.latent_size is None
        assert isinstance(learner, MboldSettings)
        assert (learner.loss, learner.bound, learner.goals.balanced, learner.fourier) == ("mse", "none", 0, 0)


@pytest.mark.parametrize("name", DATA)
def test_data_configs(name: str) -> None:
    assert CollectorSettings.load(name) != CollectorSettings()


@pytest.mark.parametrize("name", GRAPHS)
def test_graph_configs(name: str) -> None:
    settings = GraphTrainSettings.load(f"graphs/{name}")
    find(settings.model.name).parameters.from_values(settings.model.params, name)
    assert settings.learner.discount == 0.9


@pytest.mark.parametrize(
    ("name", "size", "encoder", "network"),
    # 64-128-128-128-48 and 128-128-128-128-48-1; 128-2048-2048-2048-512 and 256-2048-2048-2048-512-1, with BatchNorm.
    [("random", 64, 47_536, 55_777), ("large", 128, 9_718_272, 9_718_272 + 128 * 2048 + 512 + 1 + 2 * 512)],
)
def test_graph_networks_of_the_paper(name: str, size: int, encoder: int, network: int) -> None:
    spec = QModelSpec(size, 1, 0.9)
    model, _ = build_model(GraphTrainSettings.load(f"graphs/{name}", ["model.name=euclidean"]), spec)
    assert isinstance(model, LatentQModel)
    assert count_parameters(model.encoder) == encoder
    model, _ = build_model(GraphTrainSettings.load(f"graphs/{name}", ["model.name=unconstrained"]), spec)
    assert count_parameters(model) == network


@pytest.mark.parametrize("name", STUDIES)
def test_studies(name: str) -> None:
    study = Study.load(f"studies/{name}", [])
    check_models(study)
    assert study.runs


def test_the_paper_study_has_the_grids_of_the_paper() -> None:
    paper, laptop = (Study.load(f"studies/{name}", []) for name in ("paper", "laptop"))
    families = paper.settings.families
    assert set(families) == set(laptop.settings.families) - {"euclidean", "l1", "spherical"}
    for name in ("deep-norm", "deep-norm-fixed"):
        assert families[name].grid == {"model.params.num_components": [64, 128]}
    for name in ("mrn", "mrn-fixed"):
        assert families[name].grid == {"model.params.hidden_size": [128, 512]}
    assert families["wide-norm"].grid == {"model.params.component_size": [32, 48, 128]}
    for name in ("dot-triangle", "unconstrained-triangle"):
        assert families[name].grid["learner.triangle"] == [0.3, 1, 3]
    for name in ("dot", "dot-triangle", "unconstrained", "unconstrained-triangle", "unconstrained-state"):
        assert families[name].grid["model.params.readout"] == list(READOUTS)
    assert {run.settings.model.width for run in paper.runs} == {2048}
    for study in (paper, laptop):
        reductions = {run.settings.model.params["reduction"] for run in study.runs if run.settings.model.name == "iqe"}
        assert reductions == {"mean", "max"}  # the name iqe-maxmean would be wrong for these


def test_every_family_has_a_config() -> None:
    families = {find(TrainSettings.load(name).model.name).family for name in CONFIGS if name.startswith("paper-")}
    assert families == {"IQE", "PQE", "Deep Norm", "Wide Norm", "MRN", "metric", "dot product", "unconstrained"}


def test_the_latent_size_of_128_in_the_papers_text() -> None:
    settings = TrainSettings.load("paper-iqe-128")
    model = find(settings.model.name).make(QModelSpec(18, 4, 0.95), settings.model.params)
    assert isinstance(model, LatentQModel)
    assert count_parameters(model.encoder) == 9_492_992
