"""Objectives, one file each, and how their batches are sampled."""
