"""The results of a comparison in a sentence or two."""

from collections.abc import Sequence

from qrl.agents.evaluation.results import REFERENCES, Results


def takeaway(results: Sequence[Results], agents: int) -> str:
    """`agents`: how many of the results, the first ones, are of agents; the others are of references."""
    trained, references = results[:agents], results[agents:]
    scored = [result for result in trained if result.success_rate is not None]
    if not scored:
        return _distances(trained)
    ranked = sorted(scored, key=lambda result: -float(result.success_rate or 0))
    best, *others = ranked
    tasks = f"{best['tasks']:,.0f} tasks"
    parts = [f"{best.name} reaches the goal in {_percent(best)} of {tasks}"]
    if others:
        parts.append("; ".join(f"{other.name} in {_percent(other)}" for other in others))
    beside = [f"{result.name} {_percent(result)}" for result in references if result.name in REFERENCES]
    text = "; ".join(parts) + "."
    if beside:
        text += f" For comparison: {', '.join(beside)}."
    return text + _error(best)


def _percent(result: Results) -> str:
    return f"{100 * float(result.success_rate or 0):.1f} %"


def _error(result: Results) -> str:
    error, signed = (result[f"distances.reachable.{key}"] for key in ("absolute_error", "signed_error"))
    if error is None or signed is None:
        return ""
    tendency = "too long" if signed > 0 else "too short"
    return f" The distances of {result.name} are off by {error:.2f} steps on average ({abs(signed):.2f} {tendency})."


def _distances(results: Sequence[Results]) -> str:
    """Without tasks: what is known of the distances themselves."""
    validated = [result for result in results if result["validation.loss"] is not None]
    if validated:
        return f"There is no world to plan in. {_validation(validated)}"
    violations = [(result.name, result["axioms.triangle_violations"]) for result in results]
    known = [f"{name} {value:.2%}" for name, value in violations if value is not None]
    if not known:
        return "There is no world to plan in, and there are no distances to compare."
    return f"There is no world to plan in. Triples that violate the triangle inequality: {', '.join(known)}."


def _validation(results: Sequence[Results]) -> str:
    """On held-out trajectories: how far distances agree with hindsight, or the loss where there are none."""
    parts = []
    for result in results:
        consistency, correlation = result["hindsight.consistency"], result["hindsight.spearman"]
        if consistency is None:
            parts.append(f"{result.name} has no distances, and a validation loss of {result['validation.loss']:.4g}")
            continue
        ranks = "" if correlation is None else f", with a rank correlation of {correlation:.2f}"
        parts.append(f"{result.name} keeps {consistency:.1%} of pairs within the steps taken{ranks}")
    return f"On held-out trajectories, {'; '.join(parts)}."
