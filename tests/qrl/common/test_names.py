from qrl.common.names import unknown_name


def test_nearest_and_all_known_names_are_told() -> None:
    assert unknown_name("fruit", "aple", ["pear", "apple"]) == (
        "unknown fruit 'aple' (did you mean 'apple'?); known: apple, pear"
    )
    assert unknown_name("fruit", "xyz", ["pear"]) == "unknown fruit 'xyz'; known: pear"
    assert unknown_name("fruit", "xyz", []) == "unknown fruit 'xyz'; known: none"
