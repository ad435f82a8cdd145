from qrl.common.nesting import nest


def test_dotted_keys_become_mappings() -> None:
    assert nest({"a.b.c": 1, "a.d": 2, "e": 3}) == {"a": {"b": {"c": 1}, "d": 2}, "e": 3}


def test_dotted_and_nested_keys_are_mixed() -> None:
    assert nest({"a": {"b.c": 1}, "a.b": {"d": 2}}) == {"a": {"b": {"c": 1, "d": 2}}}


def test_later_values_win() -> None:
    assert nest({"a": {"b": 1}, "a.b": 2}) == {"a": {"b": 2}}


def test_values_are_kept() -> None:
    assert nest({"a.b": [1, 2], "c": None}) == {"a": {"b": [1, 2]}, "c": None}
    assert nest({}) == {}
