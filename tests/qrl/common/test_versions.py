import numpy
import torch

import qrl
from qrl.common.versions import versions


def test_versions() -> None:
    found = versions("torch")
    assert list(found) == ["qrl", "numpy", "gymnasium", "minigrid", "torch"]
    assert found["qrl"] == qrl.__version__
    assert (found["numpy"], found["torch"]) == (numpy.__version__, torch.__version__)
