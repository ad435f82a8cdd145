"""Directed graphs and their shortest-path distances as data for regression."""
