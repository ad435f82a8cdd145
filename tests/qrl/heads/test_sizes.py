import pytest

from qrl.errors import ShapeError
from qrl.heads.sizes import split


def test_split() -> None:
    assert split(24, 8) == (3, 8)
    assert split(8, 8) == (1, 8)


@pytest.mark.parametrize(("input_size", "dim_per_component"), [(10, 4), (8, 0), (0, 8), (4, 8)])
def test_sizes_that_do_not_divide(input_size: int, dim_per_component: int) -> None:
    with pytest.raises(ShapeError, match=f"input_size {input_size} cannot be split .* {dim_per_component}; choose"):
        split(input_size, dim_per_component)
