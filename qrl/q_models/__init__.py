"""Q-models: what learners train and the planner queries."""

from qrl.q_models.base import QModel
from qrl.q_models.dot_product import DotProductQModel
from qrl.q_models.latent import LatentQModel
from qrl.q_models.unconstrained import UnconstrainedQModel

__all__ = ["DotProductQModel", "LatentQModel", "QModel", "UnconstrainedQModel"]
