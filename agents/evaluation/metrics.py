"""The metrics of an evaluation: one table, from which JSON, tables, reports, TensorBoard, studies and --help derive.

To add a metric, add a line to the table below or, in a plugin, decorate a function with `register_metric`. Nothing here
imports torch, so that --help answers at once.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from qrl.agents.evaluation.metric import Metric, Value
from qrl.agents.evaluation.statistics import linear_correlation, rank_correlation
from qrl.common.errors import ConfigError

if TYPE_CHECKING:
    from qrl.agents.evaluation.hindsight import Hindsight
    from qrl.agents.evaluation.measurements import Estimates, Measurements, Tasks

CAUSES = ("blocked", "loop", "cap", "ended")  # of failure


def _of_tasks(compute: Callable[["Tasks"], Any]) -> Callable[["Tasks"], Value]:
    """A metric of tasks; without tasks it does not exist."""
    return lambda tasks: float(compute(tasks)) if len(tasks) else None


def _mean(values: "np.ndarray[Any, Any]") -> Value:
    return float(values.mean(dtype=np.float64)) if values.size else None


def _excess_steps(tasks: "Tasks") -> Value:
    return None if tasks.exact is None else _mean((tasks.steps - tasks.exact)[tasks.success > 0])


def _spl(tasks: "Tasks") -> Value:
    if tasks.exact is None:
        return None
    return _mean(np.where(tasks.success > 0, tasks.exact / np.maximum(tasks.steps, tasks.exact), 0))


def _spearman(pairs: "Estimates") -> Value:
    return _ranks_agree(pairs.estimate, pairs.exact)


def _ranks_agree(estimate: "np.ndarray[Any, Any]", steps: "np.ndarray[Any, Any]") -> Value:
    """Over all pairs, infinite estimates ranking last; undefined for NaN and where one side is constant."""
    correlation = rank_correlation(estimate, steps)
    return None if np.isnan(correlation) else correlation


def _pearson(pairs: "Estimates") -> Value:
    """Over finite estimates; undefined where one side is constant."""
    correlation = linear_correlation(pairs.estimate[pairs.known], pairs.exact[pairs.known])
    return None if np.isnan(correlation) else correlation


def _ratio_cv(pairs: "Estimates") -> Value:
    """Undefined without a positive mean, as for estimates that are all -1: a learned distance of 0 everywhere."""
    mean = _mean(pairs.ratio)
    return float(pairs.ratio.std()) / mean if mean is not None and mean > 0 else None


def _failed(cause: str) -> Callable[["Tasks"], Value]:
    return _of_tasks(lambda tasks: ((tasks.cause == cause) * (1.0 - tasks.success)).sum())


TASKS = [  # of a set of tasks: `Tasks`
    Metric("success_rate", "success rate", "fraction of tasks that reach the goal",
           _of_tasks(lambda tasks: tasks.success.mean()), 3, True, by_distance=True),
    Metric("spl", "SPL",
           "success weighted by exact distance / steps taken: 1 if every goal is reached by a shortest path",
           _spl, 3, True),
    Metric("excess_steps", "excess steps of successes", "steps beyond the exact distance, mean over successes",
           _excess_steps, 2, False),
    Metric("tasks", "tasks", "number of tasks; in a known world, all have reachable goals",
           _of_tasks(len), 0, by_distance=True),
    Metric("failures.blocked", "  failed: blocked", "tasks that push against a wall or door forever",
           _failed("blocked"), 0, False),
    Metric("failures.loop", "  failed: loop", "tasks that walk in a circle", _failed("loop"), 0, False),
    Metric("failures.cap", "  failed: cap", "tasks that run out of steps on the way", _failed("cap"), 0, False),
    Metric("failures.ended", "  failed: ended", "tasks that the environment ends short of the goal",
           _failed("ended"), 0, False),
]  # fmt: skip

ERRORS = [  # of a set of (state, action, goal): `Estimates`
    Metric("pairs", "pairs", "number of (state, action, goal)", len, 0),
    Metric("signed_error", "estimate - exact", "mean of learned - exact steps to the goal",
           lambda pairs: _mean(pairs.error), 2, by_distance=True),
    Metric("absolute_error", "|estimate - exact|", "mean of |learned - exact| steps to the goal",
           lambda pairs: _mean(np.abs(pairs.error)), 2, False, by_distance=True),
    Metric("spearman", "rank correlation (Spearman)",
           "rank correlation of learned and exact steps; infinite estimates rank last", _spearman, 3, True),
    Metric("pearson", "linear correlation (Pearson)",
           "linear correlation of learned and exact steps; infinite estimates are left out", _pearson, 3, True),
    Metric("ratio_cv", "variation of estimate / exact",
           "0 for distances right up to a factor: std / mean of (learned + 1) / (exact + 1) steps",
           _ratio_cv, 3, False),
    Metric("underestimated", "underestimated by more than 1",
           "fraction estimated more than 1 step below the exact distance",
           lambda pairs: _mean(pairs.error < -1), 3, False),
    Metric("known", "  fraction with an estimate", "fraction with a finite estimate; errors are means over these",
           lambda pairs: _mean(pairs.known), 3, True),
]  # fmt: skip


def _within(
    prefix: str,
    part: Callable[["Measurements"], Any],
    metrics: Sequence[Metric],
    context: str = "",
    titles: Mapping[str, str] | None = None,
    columns: Mapping[str, str] | None = None,
    **flags: Sequence[str],
) -> list[Metric]:
    """The metrics of one part of the measurements: with a prefix, and with a title only where `titles` has one."""

    def of_part(compute: Callable[[Any], Value]) -> Callable[["Measurements"], Value]:
        def measured(measurements: "Measurements") -> Value:
            value = part(measurements)
            return None if value is None else compute(value)

        return measured

    return [
        Metric(
            key=f"{prefix}{metric.key}",
            title=metric.title if titles is None else titles.get(metric.key, ""),
            help=f"{metric.help}{context}",
            compute=of_part(metric.compute),
            digits=metric.digits,
            higher_is_better=metric.higher_is_better,
            column=(columns or {}).get(metric.key),
            **{flag: metric.key in keys for flag, keys in flags.items()},
        )
        for metric in metrics
    ]


def _own(*keys: str) -> dict[str, str]:
    """Columns that are named as their metrics."""
    return {key: key for key in keys}


def _hindsight(measurements: "Measurements") -> "Hindsight | None":
    return None if measurements.validation is None else measurements.validation.hindsight


def _axiom(name: str) -> Callable[["Measurements"], Value]:
    return lambda measurements: None if measurements.axioms is None else getattr(measurements.axioms, name)


METRICS = [
    *_within("", lambda m: m.tasks, TASKS, columns=_own("success_rate", "spl", "excess_steps"),
             headline=("success_rate", "spl"), in_training=("success_rate",)),
    Metric("unreachable_tasks", "unreachable tasks (left out)", "start-goal pairs left out: the goal is unreachable",
           lambda m: m.unreachable_tasks, 0),
    *_within("all_pairs.", lambda m: m.all_pairs, TASKS, ", from every state to every other reachable one",
             titles={"success_rate": "success rate, all pairs of states"},
             columns={"success_rate": "all_pairs_success_rate"}),
    *_within("all_pairs.seen.", lambda m: m.seen_pairs, TASKS,
             ", over all pairs of states whose goal a trajectory visits after the start",
             titles={"success_rate": "  success rate, pairs seen in a trajectory"},
             columns={"success_rate": "seen_success_rate"}),
    *_within("all_pairs.unseen.", lambda m: m.unseen_pairs, TASKS,
             ", over all pairs of states whose goal no trajectory visits after the start",
             titles={"success_rate": "  success rate, unseen pairs"},
             columns={"success_rate": "unseen_success_rate"}),
    Metric("ranking_accuracy", "ranking accuracy",
           "fraction of states and other reachable goals for which the action taken lies on a shortest path",
           lambda m: None if m.optimal_actions is None else _mean(m.optimal_actions), 3, True,
           "ranking_accuracy", headline=True, in_training=True),
    *_within("distances.reachable.", lambda m: m.reachable, ERRORS, ", over goals reachable after the action",
             titles={"signed_error": "steps to the goal, estimate - exact",
                     "absolute_error": "  |estimate - exact|",
                     "spearman": "  rank correlation (Spearman)",
                     "pearson": "  linear correlation (Pearson)",
                     "ratio_cv": "  variation of estimate / exact",
                     "underestimated": "  underestimated by more than 1",
                     "known": "  fraction with an estimate"},
             columns=_own("signed_error", "absolute_error", "spearman", "pearson", "ratio_cv", "underestimated"),
             headline=("signed_error", "absolute_error"), in_training=("signed_error", "absolute_error")),
    *_within("distances.seen.", lambda m: m.seen, ERRORS, ", over goals that a trajectory visits after the action",
             titles={"absolute_error": "  |estimate - exact|, pairs seen in a trajectory"}),
    *_within("distances.unseen.", lambda m: m.unseen, ERRORS,
             ", over reachable goals that no trajectory visits after the action",
             titles={"absolute_error": "  |estimate - exact|, unseen pairs"}),
    *_within("distances.unreachable.", lambda m: m.unreachable, [
        Metric("pairs", "", "number of (state, action, goal) with an unreachable goal", len, 0),
        Metric("mean_estimate", "  unreachable goals: mean estimate",
               "mean estimate of their steps, which should be large",
               lambda pairs: _mean(pairs.estimate), 1, True),
        Metric("beyond", "    longer than every exact distance", "fraction estimated longer than every exact distance",
               lambda pairs: _mean(pairs.estimate > pairs.longest), 3, True),
    ], columns={"mean_estimate": "unreachable_estimate", "beyond": "unreachable_beyond"}),
    Metric("axioms.triangle_violations", "triangle violations",
           "fraction of random triples with d(x,z) > d(x,y) + d(y,z) + 0.001: 0 for a quasimetric by construction",
           _axiom("triangle_violations"), 4, False, "triangle_violations", headline=True),
    Metric("axioms.triangle_excess", "  largest excess", "largest d(x,z) - d(x,y) - d(y,z), at least 0",
           _axiom("triangle_excess"), 2, False, "triangle_excess"),
    Metric("axioms.identity_error", "identity error", "mean |d(x,x)|; for goals that are states, mean |d((s,a),s')|",
           _axiom("identity_error"), 3, False, "identity_error"),
    Metric("axioms.asymmetry", "asymmetry, learned",
           "mean |d(s,g) - d(g,s)| by the best actions; in a known world, of states that reach each other",
           _axiom("asymmetry"), 2, None, "asymmetry"),
    Metric("axioms.true_asymmetry", "asymmetry, exact", "the same of the exact distances",
           _axiom("true_asymmetry"), 2),
    *_within("validation.", lambda m: m.validation, [
        Metric("loss", "validation loss", "loss of the learner on held-out trajectories",
               lambda part: part.loss, 5, False),
        Metric("trajectories", "held-out trajectories", "number of held-out trajectories",
               lambda part: len(part.lengths), 0),
        Metric("mean_length", "  mean length", "mean number of steps of held-out trajectories",
               lambda part: _mean(part.lengths), 1),
    ], columns={"loss": "validation_loss"}, headline=("loss",), in_training=("loss",)),
    *_within("hindsight.", _hindsight, [
        Metric("consistency", "hindsight consistency",
               "fraction of pairs of a held-out trajectory with d(x_i, x_j) <= j - i: 1 for exact distances in a "
               "deterministic world", lambda pairs: _mean(pairs.consistent), 3, True),
        Metric("excess", "  excess over hindsight",
               "mean of d(x_i, x_j) - (j - i) where positive, else 0, over these pairs",
               lambda pairs: _mean(pairs.excess), 2, False),
        Metric("spearman", "  rank correlation with hindsight",
               "rank correlation of d(x_i, x_j) and j - i over these pairs; below 1 where trajectories wander",
               lambda pairs: _ranks_agree(pairs.distance, pairs.steps), 3, True),
        Metric("pairs", "", "number of these pairs; of more, a random sample", len, 0),
    ], columns={key: f"hindsight_{key}" for key in ("consistency", "excess", "spearman")},
       headline=("consistency", "excess", "spearman"), in_training=("consistency", "excess", "spearman")),
]  # fmt: skip


RESERVED = {  # keys of the JSON beside the metrics, with their meaning
    "name": "what was evaluated",
    "protocol": "paper (sampled tasks, stepped in the environment) or exhaustive (all tasks)",
    "max_steps": "steps allowed per task",
    "seed": "of sampled tasks, ties and random actions",
    "success_interval": "95 % Wilson interval of the success rate, where tasks are a sample",
    "success_by_distance": "tasks and success_rate by exact distance, from low to high",
    "all_pairs.success_by_distance": "the same for all pairs of states",
    "distances.by_distance": "the keys of distances.reachable by exact distance, from low to high",
    "run": "folder of the training run",
    "model": "registered name of the model",
    "learner": "registered name of the learner",
    "step": "training step of the checkpoint",
    "complete": "whether the run was trained to its end",
    "dataset": "description of the dataset",
    "dataset_hash": "its content hash",
    "notices": "what a reader of the numbers should know",
    "references": "all these keys for oracle, random and empirical-graph",
}

Compute = Callable[["Measurements"], Value]


def register_metric(
    key: str,
    *,
    title: str,
    help: str,
    digits: int = 3,
    higher_is_better: bool | None = None,
    in_training: bool = False,
) -> Callable[[Compute], Compute]:
    """Register `function(measurements) -> float | None` as a metric of every evaluation and study.

    in_training: also compute it at every evaluation during training.
    """

    def decorate(compute: Compute) -> Compute:
        again = [metric for metric in METRICS if metric.key == key and _same_function(metric.compute, compute)]
        _check_key(key, [metric for metric in METRICS if metric not in again])
        metric = Metric(key, title, help, _named(key, compute), digits, higher_is_better, key.replace(".", "_"))
        metric = replace(metric, headline=True, in_training=in_training)
        if again:  # the same function defined again, as when a notebook's cell is run twice
            METRICS[METRICS.index(again[0])] = metric
        else:
            METRICS.append(metric)
        return compute

    return decorate


def _same_function(registered: Callable[..., Any], function: Callable[..., Any]) -> bool:
    original = getattr(registered, "__wrapped__", registered)
    return (original.__module__, original.__qualname__) == (function.__module__, function.__qualname__)


def _check_key(key: str, others: Sequence[Metric]) -> None:
    """Refuse a key that would hide another one in the JSON, or a column of a study."""
    for known in (*RESERVED, *(metric.key for metric in others)):
        if key == known or known.startswith(f"{key}.") or key.startswith(f"{known}."):
            raise ConfigError(f"the metric {key!r} collides with the key {known!r}; choose another key")
    if key.replace(".", "_") in {metric.column for metric in others}:
        raise ConfigError(f"the metric {key!r} has the same column as another metric; choose another key")


def _named(key: str, compute: Compute) -> Compute:
    """Let an error in a plugin's metric name the metric."""

    @functools.wraps(compute)
    def measured(measurements: "Measurements") -> Value:
        try:
            value = compute(measurements)
            return None if value is None else float(value)
        except Exception as error:
            raise ConfigError(f"the metric {key!r} failed: {type(error).__name__}: {error}") from error

    return measured
