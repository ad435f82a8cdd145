import numpy
import torch

import qrl
from qrl.common.versions import versions


def test_versions() -> None:
    recorded = versions("torch")
    assert list(recorded) == ["qrl", "numpy", "gymnasium", "minigrid", "torch"]
    assert recorded["qrl"] == qrl.__version__
    assert (recorded["numpy"], recorded["torch"]) == (numpy.__version__, torch.__version__)
