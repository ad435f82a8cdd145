"""Directed graphs, and datasets of their shortest-path distances for regression."""
