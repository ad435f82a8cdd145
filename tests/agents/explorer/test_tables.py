"""Tables in few bytes: rounding as the page shows it, and packing without loss."""

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from qrl.agents.explorer.tables import BEYOND, INFINITE, Codes, pack, quantize, unpack

STEPS = st.floats(-1, 600, width=32, allow_subnormal=False)


def shown(codes: Codes) -> list[str]:
    return [f"{(int(code) + codes.offset) / 10**codes.digits:.{codes.digits}f}" for code in codes.values.ravel()]


@given(arrays.arrays(np.float32, st.integers(1, 30), elements=STEPS))
def test_numbers_are_shown_as_formatting_them_would(values: Any) -> None:
    codes = quantize(values)
    formatted = [f"{value:.{codes.digits}f}" for value in values.tolist()]
    assert [re.sub(r"^-(0(\.00)?)$", r"\1", text) for text in formatted] == shown(codes)
    decoded = (codes.values.astype(float) + codes.offset) / 10**codes.digits
    assert codes.error == pytest.approx(np.abs(decoded - values).max(), abs=1e-9)
    assert codes.error <= 0.0050001
    assert codes.digits == (0 if (values == np.rint(values)).all() else 2)


@pytest.mark.parametrize(("value", "text"), [(0.125, "0.12"), (0.375, "0.38"), (2.675, "2.67"), (-0.5, "-0.50")])
def test_ties_and_near_ties(value: float, text: str) -> None:
    assert shown(quantize(np.array([value], np.float32))) == [text]


def test_what_is_not_finite_and_what_does_not_fit() -> None:
    codes = quantize(np.array([0.25, np.inf, np.nan, 1.5], np.float32))
    assert codes.values.tolist() == [0, INFINITE, INFINITE, 125]
    assert quantize(np.array([0.5, 5000], np.float32)).digits == 1
    assert quantize(np.array([0.5, 50_000], np.float32)).digits == 0
    codes = quantize(np.array([0.5, 1e30], np.float32))
    assert codes.values.tolist() == [0, BEYOND]
    assert quantize(np.full(3, np.inf, np.float32)).values.tolist() == [INFINITE] * 3


@given(arrays.arrays(np.uint16, st.integers(1, 50)), arrays.arrays(np.uint8, st.integers(1, 50)))
def test_packing_loses_nothing(words: Any, octets: Any) -> None:
    assert unpack(pack(words), np.uint16).tolist() == words.tolist()
    assert unpack(pack(octets), np.uint8).tolist() == octets.tolist()
