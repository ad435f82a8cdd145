"""Sizes of heads."""

from qrl.errors import ShapeError


def split(input_size: int, dim_per_component: int) -> tuple[int, int]:
    """The number and the size (k, l) of the components of a latent."""
    if dim_per_component < 1 or input_size < 1 or input_size % dim_per_component:
        raise ShapeError(
            f"input_size {input_size} cannot be split into components of dim_per_component {dim_per_component}; "
            "choose a divisor"
        )
    return input_size // dim_per_component, dim_per_component
