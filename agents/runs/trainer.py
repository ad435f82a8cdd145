"""The learner of a run together with its data: built, scored, saved and restored."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from qrl.agents.errors import CheckpointError, TrainingError
from qrl.agents.evaluation.validation import Validator
from qrl.agents.learners.base import Learner, LearnerState
from qrl.agents.learners.checks import quick_check
from qrl.agents.learners.registry import find_learner
from qrl.agents.runs.checkpoint import Checkpoint, load_checkpoint, not_finite, save_checkpoint
from qrl.agents.runs.model import MISFITS, build_model, check_shapes, model_params
from qrl.agents.runs.problems import problem_of
from qrl.agents.runs.settings import RunSettings, differences
from qrl.agents.scaling import Scaling
from qrl.agents.tensors import with_prefix
from qrl.common.errors import UserError
from qrl.common.seeds import derived_seed
from qrl.q_models.base import QModel
from qrl.registry import find
from qrl.spec import QModelSpec


@dataclass(frozen=True)
class Trainer:
    settings: RunSettings
    dataset: Any
    model_params: dict[str, Any]
    learner: Learner
    scaling: Scaling
    validator: Validator | None  # of trajectories that are held out

    @classmethod
    def build(cls, settings: RunSettings, dataset: Any, scaling: Scaling | None = None) -> "Trainer":
        """A learner at initialization; observations are scaled by `scaling`, or as the settings say.

        A plugin's is checked against the contract.
        """
        problem = problem_of(settings)
        training, held_out = problem.split(settings, dataset)
        states, num_actions = problem.states(training)
        observations = torch.tensor(states)
        scaling = scaling or _fit_scaling(settings, observations)
        spec = QModelSpec(scaling.output_dim, num_actions, settings.learner.discount)
        model, params = build_model(settings, spec)
        scaled = scaling(observations).to(settings.device)
        registration = find_learner(settings.learner.name)
        seed = derived_seed(settings.seed, "batches")

        def build(model: QModel) -> Learner:
            return registration.build(model, scaled, training, settings.learner, seed)

        if registration.origin != "qrl":
            quick_check(build(copy.deepcopy(model)), settings.learner)
        learner = build(model)
        validator = None
        if held_out is not None:
            validator = Validator(model, scaling, held_out, settings.learner, settings.device)
        return cls(settings, dataset, params, learner, scaling, validator)

    @classmethod
    def warm_start(cls, settings: RunSettings, dataset: Any, path: Path) -> "Trainer":
        """A learner that starts from the weights and the scaling of a checkpoint."""
        checkpoint, tensors = load_checkpoint(path)
        states, num_actions = problem_of(settings).states(dataset)
        with _fits(path, settings):
            scaling = Scaling.from_tensors(tensors)
        before = {
            "model": checkpoint.model_name,
            "observation_dim": scaling.observation_dim,
            "num_actions": checkpoint.num_actions,
        }
        now = {"model": settings.model.name, "observation_dim": states.shape[1], "num_actions": num_actions}
        changes = differences(before, now)
        if not changes:
            changes = differences(checkpoint.model_params, model_params(settings), "model.params")
        if changes:
            raise CheckpointError(f"--init: {path} holds another model: {'; '.join(changes)}")
        trainer = cls._build_for(path, settings, dataset, tensors)
        with _fits(path, settings):
            trainer.learner.load_weights(with_prefix(tensors, "model"))
        return trainer

    @classmethod
    def restore(cls, settings: RunSettings, dataset: Any, path: Path) -> "Trainer":
        """A learner as a checkpoint left it, from which training resumes bit-exactly."""
        checkpoint, tensors = load_checkpoint(path)
        if checkpoint.dataset_hash != dataset.content_hash:
            raise CheckpointError(
                f"{path} was trained on other data than {settings.dataset or 'the dataset in its folder'}; "
                "give the path of the original data with dataset=FILE"
            )
        changes = settings.changes_since(checkpoint.settings, str(path))
        if changes:
            raise CheckpointError(f"{path} was trained with other settings: {'; '.join(changes)}")
        trainer = cls._build_for(path, settings, dataset, tensors)
        if checkpoint.step > trainer.learner.num_steps:
            planned = trainer.learner.num_steps
            raise CheckpointError(f"{path} is at step {checkpoint.step}, beyond the {planned} steps of its run")
        with _fits(path, settings):
            trainer.learner.load_state_dict(LearnerState(checkpoint.step, tensors, checkpoint.sampler))
        return trainer

    @classmethod
    def _build_for(cls, path: Path, settings: RunSettings, dataset: Any, tensors: dict[str, torch.Tensor]) -> "Trainer":
        with _fits(path, settings):
            scaling = Scaling.from_tensors(tensors)
            states, num_actions = problem_of(settings).states(dataset)
            if scaling.observation_dim != states.shape[1]:
                raise ValueError(f"it scales {scaling.observation_dim} features, and the data has {states.shape[1]}")
            spec = QModelSpec(scaling.output_dim, num_actions, settings.learner.discount)
            check_shapes(find(settings.model.name), spec, model_params(settings), with_prefix(tensors, "model"))
            return cls.build(settings, dataset, scaling)

    def score(self) -> dict[str, float]:
        """The metrics of the model as it is now."""
        seed = derived_seed(self.settings.seed, f"evaluation {self.learner.steps_done}")
        learner = self.learner
        problem, observations = problem_of(self.settings), learner.observations
        states = problem.scored_states(self.dataset, derived_seed(seed, "observations"))
        if states is not None:
            observations = self.scaling(torch.tensor(states)).to(self.settings.device)
        validation = None if self.validator is None else self.validator.measure(learner.state_dict().tensors)
        return problem.score(learner.model, observations, self.dataset, seed, learner.learns, validation)

    def save(self, path: Path) -> None:
        model, state = self.learner.model, self.learner.state_dict()
        tensors = state.tensors | self.scaling.tensors()
        name = not_finite(tensors)
        if name is not None:
            raise TrainingError(f"{name} is not finite after step {state.step}; try a lower learner.lr")
        checkpoint = Checkpoint(
            step=state.step,
            model_name=self.settings.model.name,
            model_params=self.model_params,
            observation_dim=model.spec.observation_dim,
            num_actions=model.spec.num_actions,
            discount=model.spec.discount,
            dataset_hash=self.dataset.content_hash,
            learns=self.learner.learns,
            settings=self.settings.fixed,
            sampler=state.sampler,
        )
        save_checkpoint(path, checkpoint, tensors)


def _fit_scaling(settings: RunSettings, observations: torch.Tensor) -> Scaling:
    learner, seed = settings.learner, derived_seed(settings.seed, "frequencies")
    scaling = Scaling.fit(observations, learner.standardize)
    return scaling.with_fourier(observations, learner.fourier, learner.fourier_scale, seed)


@contextmanager
def _fits(path: Path, settings: RunSettings) -> Iterator[None]:
    """Turn what a checkpoint of another shape raises into an error that names it."""
    try:
        yield
    except MISFITS as error:
        if isinstance(error, UserError):
            raise
        raise CheckpointError(f"{path} does not fit the model {settings.model.name}: {error}") from error
