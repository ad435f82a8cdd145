from qrl.common.seeds import derived_seed

MODEL, BATCHES = 12690615986854360492, 8324691243513866439


def test_seeds_depend_on_seed_and_purpose_only() -> None:
    assert derived_seed(0, "model") == derived_seed(0, "model")
    assert len({derived_seed(seed, purpose) for seed in range(5) for purpose in ("model", "batches")}) == 10
    assert 0 <= derived_seed(2**63 - 1, "model") < 2**64


def test_seeds_never_change() -> None:
    """Otherwise, resumed runs would differ from uninterrupted ones of an earlier release."""
    assert derived_seed(0, "model") == MODEL
    assert derived_seed(7, "batches") == BATCHES
