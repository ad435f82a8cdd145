"""Learning and planning: from a dataset to a trained agent and its scores."""
