"""JSON from files that are not trusted."""

import json
from typing import Any, NoReturn


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text; a ValueError also for what JSON of another program could not hold.

    Refused are NaN and infinities, integers of more than 64 bits, half surrogate pairs, and nesting too deep to parse.
    """
    try:
        value = json.loads(text, parse_constant=_refuse_constant, parse_int=_parse_int)
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()  # 1e999 is infinite; surrogates have no UTF-8
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return value


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not allowed in JSON")


def _parse_int(digits: str) -> int:
    if len(digits) > 20 or not -(2**63) <= int(digits) < 2**64:
        raise ValueError(f"an integer of {len(digits):,} digits")
    return int(digits)
