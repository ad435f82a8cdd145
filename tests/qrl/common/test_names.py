from qrl.common.names import nearest_name, unknown_name


def test_the_most_similar_name_ignores_case_and_dashes() -> None:
    assert nearest_name("MAX_MEAN", ["max-mean", "mean"]) == "max-mean"
    assert nearest_name("xyz", ["max-mean"]) is None
    assert nearest_name("mean", ["max-mean"]) == "max-mean"
    assert nearest_name("mean", ["max-mean"], cutoff=0.9) is None


def test_messages_name_the_most_similar_and_all_known_names() -> None:
    assert unknown_name("fruit", "aple", ["pear", "apple"]) == (
        "unknown fruit 'aple' (did you mean 'apple'?); known: apple, pear"
    )
    assert unknown_name("fruit", "xyz", ["pear"]) == "unknown fruit 'xyz'; known: pear"
    assert unknown_name("fruit", "xyz", []) == "unknown fruit 'xyz'; known: none"
