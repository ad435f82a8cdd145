"""Q-models: what the learner trains and the planner asks."""

from qrl.q_models.base import QModel
from qrl.q_models.dot_product import DotProductQModel
from qrl.q_models.latent import LatentQModel
from qrl.q_models.unconstrained import UnconstrainedQModel

__all__ = ["DotProductQModel", "LatentQModel", "QModel", "UnconstrainedQModel"]
