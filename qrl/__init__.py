"""Quasimetric Q-models for offline goal-conditioned reinforcement learning."""
