"""The estimated time of a sweep."""

from collections.abc import Iterator
from typing import Any

import pytest

from qrl.agents.learners.base import Learner
from qrl.agents.studies.estimate import estimate_lines
from qrl.agents.studies.folder import StudyFolder
from qrl.agents.studies.study import Study
from tests.agents.studies.hand_made import TINY, TINY_GRAPHS, tiny

NOWHERE = StudyFolder("does-not-exist")


def estimate(plan: Study, jobs: int = 1) -> Iterator[str]:
    todo = {name: [run for run in plan.runs if run.family == name] for name in plan.settings.families}
    return estimate_lines(plan, NOWHERE, todo, jobs, 1)


def test_families_and_total(monkeypatch: pytest.MonkeyPatch) -> None:
    times = {"iqe-maxmean": 0.5, "euclidean": 10.0}
    monkeypatch.setattr("qrl.agents.studies.estimate.seconds_per_step", lambda learner: times.pop(next(iter(times))))
    plan = tiny(families={"iqe-maxmean": {}, "euclidean": {}}, seeds=[0, 1])
    first, second, total, measured = estimate(plan, jobs=2)
    assert first == f"  {'iqe-maxmean':<28} to do: runs 2, steps 12, 500.0 ms per step, about 6 s"
    assert second == f"  {'euclidean':<28} to do: runs 2, steps 12, 10000.0 ms per step, about 2 min"
    assert total == "about 2 min of training, 1 min with --jobs 2 (threads 1)"
    assert measured.startswith("measured on this machine")


def test_the_dataset_is_shared_and_steps_grow_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    collected: list[Any] = []
    problem = tiny().settings.kind.problem
    collect = problem.collect

    def collect_once(settings: Any) -> Any:
        collected.append(collect(settings))
        return collected[-1]

    monkeypatch.setattr(problem, "collect", collect_once)
    monkeypatch.setattr("qrl.agents.studies.estimate.seconds_per_step", lambda learner: 1.0)
    plan = tiny(
        settings=TINY["settings"] | {"learner": {"batch_size": 2, "epochs": 1, "min_steps": 1}},
        families={"iqe-maxmean": {}, "dot": {"grid": {"learner.triangle": [1, 3]}}},
        axis={"collector.trajectories": [5, 50]},
        tuning_seeds=[7],
    )
    first, second, *_ = estimate(plan)
    assert len(collected) == 1
    samples = collected[0].num_transitions
    steps = -(-samples // 2) + -(-10 * samples // 2)
    assert f"runs 2, steps {steps:,}," in first
    assert f"runs 8, steps {4 * steps:,}," in second


@pytest.mark.parametrize("base", [TINY, TINY_GRAPHS], ids=["agents", "graphs"])
def test_steps_are_really_timed(base: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[Learner] = []
    step = Learner.step

    def counted(learner: Learner, log: bool = True) -> dict[str, float]:
        steps.append(learner)
        return step(learner, log)

    monkeypatch.setattr(Learner, "step", counted)
    line, *_ = estimate(tiny(base))
    assert "runs 1, steps 6," in line
    assert len(steps) > 1


def test_nothing_to_do() -> None:
    assert list(estimate_lines(tiny(), NOWHERE, {"iqe-maxmean": []}, 1, 1)) == []
