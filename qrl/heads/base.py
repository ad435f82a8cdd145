"""The base class of heads: a distance d(u, v) from components, a transform and a reduction."""

from torch import Tensor, nn

from qrl.errors import ShapeError


class Head(nn.Module):
    """A distance d(u, v) from the source latent u to the target latent v.

    A head maps two (..., input_size) tensors that broadcast against each other to (...). Latents must be finite: a NaN
    coordinate gives NaN, never a plausible number; an infinite one gives infinity, NaN or, where components are bounded
    (PQE, angles), the bound.

    A subclass implements `components`, on latents that its `embed` has seen, and sets `guaranteed_quasimetric`: whether
    d >= 0, d(u, u) = 0 and the triangle inequality hold for all parameters. Its `transform` (per component) and
    `reduction` (to a scalar) are modules.
    """

    guaranteed_quasimetric: bool

    def __init__(self, input_size: int) -> None:
        super().__init__()
        self.input_size = input_size
        self.transform: nn.Module = nn.Identity()
        self.reduction: nn.Module = nn.Identity()

    def embed(self, latents: Tensor) -> Tensor:
        """What depends on one latent alone, computed once however many pairs it is in; by default the latent."""
        return latents

    def components(self, u: Tensor, v: Tensor) -> Tensor:
        """The (..., k) components q_i of two embedded latents before transform and reduction."""
        raise NotImplementedError  # pragma: no cover

    def between(self, u: Tensor, v: Tensor) -> Tensor:
        """The distance between two embedded latents."""
        distance: Tensor = self.reduction(self.transform(self.components(u, v)))
        return distance

    def forward(self, u: Tensor, v: Tensor) -> Tensor:
        """The distance (...) from u to v; a shape that does not fit raises a ShapeError."""
        self._check(u, v)
        return self.between(self.embed(u), self.embed(v))

    def extra_repr(self) -> str:
        return f"input_size={self.input_size}"

    def _check(self, u: Tensor, v: Tensor) -> None:
        shape = u.shape
        if shape == v.shape and shape[-1:] == (self.input_size,):
            return  # the common case must be fast: the fastest heads take only some hundred microseconds
        for name, latent in (("u", u), ("v", v)):
            if latent.ndim == 0 or latent.shape[-1] != self.input_size:
                raise ShapeError(
                    f"{type(self).__name__}: {name} has the shape {tuple(latent.shape)}, "
                    f"but its last dimension must be input_size = {self.input_size}"
                )
        # Not torch.broadcast_shapes, which takes longer than some heads.
        if not all(m == n or m == 1 or n == 1 for m, n in zip(u.shape[::-1], v.shape[::-1], strict=False)):
            raise ShapeError(
                f"{type(self).__name__}: u {tuple(u.shape)} and v {tuple(v.shape)} do not broadcast against each other"
            )
