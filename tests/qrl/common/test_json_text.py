import pytest

from qrl.common.json_text import parse_json


def test_ordinary_values() -> None:
    assert parse_json('{"a": [1, -2.5e3, true, null, "\\ud83d\\ude00"]}') == {"a": [1, -2500.0, True, None, "😀"]}
    assert parse_json(b"[18446744073709551615, -9223372036854775808]") == [2**64 - 1, -(2**63)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[NaN]", "NaN is not allowed"),
        ("[-Infinity]", "-Infinity is not allowed"),
        ("[1e999]", "not JSON compliant"),
        ("[18446744073709551616]", "an integer of 20 digits"),
        ("[" + "9" * 5000 + "]", "an integer of 5,000 digits"),
        (r'["\ud800"]', "surrogates not allowed"),
        (r'{"\udfff": 1}', "surrogates not allowed"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a":' * 100_000, "nested too deeply"),
        ("{", "property name"),
        (b"\xff\xfe\xfd", "decode"),
    ],
)
def test_what_is_refused(text: str | bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        parse_json(text)
    assert len(str(caught.value)) < 300
