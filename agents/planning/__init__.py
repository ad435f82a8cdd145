"""From a trained model to actions: the agent, the greedy planner, rollouts and reference planners."""
