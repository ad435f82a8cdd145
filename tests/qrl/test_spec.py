import pytest

from qrl import QModelSpec
from qrl.common.errors import ConfigError


def test_bad_specs() -> None:
    for arguments, message in [
        ((0, 4, 0.9), "observation_dim"),
        ((3, 0, 0.9), "num_actions"),
        ((3, 10**9, 0.9), "num_actions: must be from 1 to 65,536"),
        ((3, 4, 1.0), "discount: must lie strictly between 0 and 1"),
    ]:
        with pytest.raises(ConfigError, match=message):
            QModelSpec(*arguments)
