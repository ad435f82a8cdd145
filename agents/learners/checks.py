"""The contract check of learners; its public name is `qrl.testing.check_learner`."""

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from qrl.agents.errors import LearnerError
from qrl.agents.learners.base import Learner, LearnerState
from qrl.agents.learners.registry import LearnerRegistration, find_learner
from qrl.agents.learners.settings import LearnerSettings
from qrl.common.errors import UserError
from qrl.envs.collector import CollectorSettings, collect
from qrl.envs.graphs.collector import GraphSettings, collect_graph
from qrl.errors import ContractError
from qrl.registry import make_q_model
from qrl.spec import QModelSpec

STEPS = 4
_LONG, _AVERAGED = 150, 20  # steps within which the loss must fall, and over which it is averaged

Make = Callable[..., Learner]  # by the name of a model
Check = Callable[[Make, LearnerSettings], None]


def check_learner(name: str, **settings: Any) -> None:
    registration = find_learner(name)
    values = {"name": name, "batch_size": 64, "min_steps": _LONG, "epochs": 0.01, "lr": 3e-3, **settings}
    chosen = registration.settings.from_values(values, f"learner {name}")
    checks = (_declarations, _settings, _reports, _saving, _reproducible, _resume, _learning, _models)
    _run(name, checks, _maker(registration, chosen), chosen)


def quick_check(learner: Learner, settings: LearnerSettings) -> None:
    """Step a learner, which is then of no further use, and refuse one that cannot report or be saved."""
    _run(settings.name, (_reports, _saving), lambda: learner, settings)


def _run(name: str, checks: Sequence[Check], make: Make, settings: LearnerSettings) -> None:
    with torch.random.fork_rng(devices=[]):
        for check in checks:
            try:
                check(make, settings)
            except Exception as error:
                reason = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
                title = (check.__doc__ or "").strip().rstrip(".")
                reason = reason.removeprefix(f"learner {name}: ")
                raise ContractError(f"learner {name} breaks the contract ({title}): {reason}") from error


def _maker(registration: LearnerRegistration, settings: LearnerSettings) -> Make:
    dataset: Any
    if registration.settings.DATA == "graph":
        dataset = collect_graph(GraphSettings(kind="random-block", nodes=30, feature_size=8))
        states, num_actions = dataset.features, 1
    else:
        dataset = collect(CollectorSettings(layout="corridor", trajectories=40, max_steps=30))
        states, num_actions = dataset.observations, dataset.header.spaces.num_actions
    observations = torch.tensor(states)
    spec = QModelSpec(states.shape[1], num_actions, settings.discount)

    def make(model: str = "iqe-sum") -> Learner:
        torch.manual_seed(0)
        sizes = {"hidden_sizes": (16, 16)} | ({} if model.startswith("unconstrained") else {"latent_size": 16})
        q_model = make_q_model(model, spec, **sizes)
        return registration.build(q_model, observations, dataset, settings, seed=1)

    return make


def _demand(truth: bool, message: str) -> None:
    if not truth:
        raise ContractError(message)


def _declarations(make: Make, settings: LearnerSettings) -> None:
    """It declares what it learns and which models it can train."""
    cls, learns = type(make()), settings.LEARNS
    _demand(learns in ("distances", "scores"), f"LEARNS is {learns!r}, neither 'distances' nor 'scores'")
    kinds = set(cls.GOAL_KINDS)
    _demand(bool(kinds) and kinds <= {"state-action", "state"}, f"GOAL_KINDS is {cls.GOAL_KINDS!r}")


def _settings(make: Make, settings: LearnerSettings) -> None:
    """Its settings survive being saved."""
    saved = json.loads(json.dumps(settings.model_dump(mode="json")))
    _demand(type(settings).from_values(saved, "saved") == settings, f"they come back changed from {saved}")


def _reports(make: Make, settings: LearnerSettings) -> None:
    """A step reports finite scalars under the names that it declares."""
    learner = make()
    declared, logged = learner.scalars, learner.step(log=True)
    _demand(len(set(declared)) == len(declared), f"it declares a scalar twice: {declared}")
    _demand(list(logged) == declared, f"it declares {declared} and reports {list(logged)}")
    wrong = {key: value for key, value in logged.items() if not isinstance(value, float) or not math.isfinite(value)}
    _demand(not wrong, f"these are no finite numbers: {wrong}")
    _demand(not learner.step(log=False), "a step that is not logged reports something")


def _saving(make: Make, settings: LearnerSettings) -> None:
    """After a step, its state can be saved."""
    learner = make()
    learner.step(log=False)
    learner.state_dict()


def _reproducible(make: Make, settings: LearnerSettings) -> None:
    """The same seed gives the same steps, logged or not, whatever the global random state."""
    first, second = make(), make()
    for _ in range(STEPS):
        first.step(log=True)
        torch.rand(3)
        second.step(log=False)
    _same("a second learner", second.state_dict(), first.state_dict())


def _resume(make: Make, settings: LearnerSettings) -> None:
    """A learner that is saved and restored goes on bit by bit as if it had not been."""
    learner, resumed = make(), make()
    for _ in range(STEPS):
        learner.step(log=False)
    state = learner.state_dict()
    copied = {key: tensor.clone() for key, tensor in state.tensors.items()}
    resumed.load_state_dict(LearnerState(state.step, copied, json.loads(json.dumps(state.sampler))))
    for _ in range(STEPS):
        learner.step(log=False)
        resumed.step(log=False)
    _same("the restored learner", resumed.state_dict(), learner.state_dict())


def _same(what: str, state: LearnerState, expected: LearnerState) -> None:
    _demand(state.step == expected.step, f"{what} counts {state.step} steps, not {expected.step}")
    _demand(state.tensors.keys() == expected.tensors.keys(), f"{what} has other tensors")
    different = [key for key, tensor in expected.tensors.items() if not torch.equal(tensor, state.tensors[key])]
    _demand(not different, f"{what} differs in {', '.join(different[:3])}")
    _demand(state.sampler == expected.sampler, f"{what} differs in the sampler's state")


def _learning(make: Make, settings: LearnerSettings) -> None:
    """The loss falls in a tiny world."""
    learner = make()
    losses = [learner.step()["loss"] for _ in range(_LONG)]
    first, last = (sum(part) / _AVERAGED for part in (losses[:_AVERAGED], losses[-_AVERAGED:]))
    _demand(last < first, f"its mean over {_AVERAGED} steps goes from {first:.4g} to {last:.4g} in {_LONG} steps")


def _models(make: Make, settings: LearnerSettings) -> None:
    """It trains the models that it accepts, and refuses others with a LearnerError."""
    cls = type(make())
    accepted = {"dot": not cls.NEEDS_QUASIMETRIC and "state-action" in cls.GOAL_KINDS}
    accepted["unconstrained-state"] = not cls.NEEDS_QUASIMETRIC and "state" in cls.GOAL_KINDS
    for model, fits in accepted.items():
        try:
            learner = make(model)
        except LearnerError:
            _demand(not fits, f"it refuses {model}, which it declares to accept")
            continue
        _demand(fits, f"it takes {model}, which it declares not to accept")
        scalars = learner.step()
        _demand(all(map(math.isfinite, scalars.values())), f"a step with {model} reports {scalars}")
