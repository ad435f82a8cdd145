"""Tables in few bytes: rounded, stored as differences of neighbours, compressed, and written as base64 text."""

import base64
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

DIGITS = 2  # of steps that the page shows; fewer where they would not fit
INFINITE = 2**16 - 1  # codes: no finite value
BEYOND = 2**16 - 2  # at least this much


@dataclass(frozen=True)
class Codes:
    """Code c stands for (c + offset) / 10**digits; `error` is the largest of the rounding."""

    values: NDArray[np.uint16]
    digits: int
    offset: int
    error: float

    def as_dict(self) -> dict[str, Any]:
        return {"digits": self.digits, "offset": self.offset, "error": self.error, "data": pack(self.values)}


def quantize(values: NDArray[np.float32]) -> Codes:
    """Round to the digits that the page shows, exactly as formatting them would; whole numbers have no digits."""
    finite = np.isfinite(values)
    exact = np.where(finite, values, 0).astype(np.float64)
    for digits in range(0 if (exact == np.rint(exact)).all() else DIGITS, -1, -1):
        # Exact: float32 values have 24 bits, so that up to 100 times them fits into float64. Ties go to the even digit.
        units = np.rint(exact * 10**digits)
        offset = float(units[finite].min()) if finite.any() else 0.0
        if (units[finite] - offset < BEYOND).all():
            break
    codes = np.where(finite, np.clip(units - offset, 0, BEYOND), INFINITE)
    error = np.abs(exact - units / 10**digits)[codes < BEYOND].max(initial=0)
    return Codes(codes.astype(np.uint16), digits, int(offset), float(error))


def pack(values: NDArray[np.uint16] | NDArray[np.uint8]) -> str:
    """Differences of neighbours, modulo the type's size, then byte planes: low bytes before high ones."""
    flat = values.ravel()
    differences = np.diff(flat, prepend=flat.dtype.type(0))  # wraps around
    planes = differences.astype(flat.dtype.newbyteorder("<")).view(np.uint8).reshape(-1, flat.itemsize).T
    return base64.b64encode(zlib.compress(np.ascontiguousarray(planes).tobytes(), 9)).decode()


def unpack(text: str, dtype: type[np.uint16] | type[np.uint8]) -> NDArray[Any]:
    """The inverse of `pack`, flat; `data.js` does the same."""
    size = np.dtype(dtype).itemsize
    planes = np.frombuffer(zlib.decompress(base64.b64decode(text)), np.uint8).reshape(size, -1)
    differences = np.ascontiguousarray(planes.T).view(np.dtype(dtype).newbyteorder("<")).ravel()
    return differences.cumsum(dtype=dtype)
