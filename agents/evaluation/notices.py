"""What a reader of results should know of the world and of the model."""

from qrl.agents.evaluation.results import Results
from qrl.agents.planning.agent import Agent
from qrl.envs.world import World


def world_notices(world: World) -> list[str]:
    notices = list(world.notices)
    if not world.deterministic:
        notices.append(
            f"the world is stochastic: distances are log_gamma E[gamma^T] with gamma {world.discount}, success rates "
            "of the exhaustive protocol are exact probabilities, and the empirical graph takes lucky outcomes for "
            "certain"
        )
    if world.noisy:
        notices.append(
            "no observation repeats: the exhaustive protocol draws one for each state, the paper's one for each step; "
            "the empirical graph knows none of them and acts at random"
        )
    return notices


def chance_notices(name: str, success: float | None, random: float | None) -> list[str]:
    """Warn of an agent that reaches fewer goals than random actions."""
    if success is None or random is None or success >= random:
        return []
    return [
        f"{name} reaches fewer goals than random actions ({success:.3f} against {random:.3f}): a greedy planner with "
        "wrong distances gets stuck, which a random walk does not"
    ]


def axiom_notices(name: str, agent: Agent | None, results: Results) -> list[str]:
    """Warn of a model that declares to be a quasimetric and is none."""
    if agent is None or not agent.model.guaranteed_quasimetric or agent.learns == "scores":
        return []
    violations, identity = results["axioms.triangle_violations"], results["axioms.identity_error"]
    broken = {
        f"the triangle inequality in {violations:.1%} of random triples": (violations or 0) > 0,
        f"d(x, x) = 0 by {identity:.2g} on average": agent.model.goal_kind == "state-action" and (identity or 0) > 1e-3,
    }
    return [
        f"{name} declares guaranteed_quasimetric but violates {what}" for what, violated in broken.items() if violated
    ]
