"""Heads: distances d(u, v) between latents, one file per family."""

from qrl.heads.base import Head
from qrl.heads.iqe import IQE
from qrl.heads.metrics import L1, Euclidean, MetricMixture, Spherical
from qrl.heads.mrn import MRN
from qrl.heads.norms import DeepNorm, WideNorm, project_
from qrl.heads.pqe import PQEGG, PQELH
from qrl.heads.torchqmet import load_torchqmet

__all__ = [
    "IQE",
    "L1",
    "MRN",
    "PQEGG",
    "PQELH",
    "DeepNorm",
    "Euclidean",
    "Head",
    "MetricMixture",
    "Spherical",
    "WideNorm",
    "load_torchqmet",
    "project_",
]
