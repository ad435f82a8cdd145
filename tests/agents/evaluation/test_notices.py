import pytest

from qrl.agents.evaluation.notices import chance_notices


@pytest.mark.parametrize("random", [None, 0.2, 0.3])
def test_an_agent_as_good_as_chance_is_not_remarked_on(random: float | None) -> None:
    assert chance_notices("agent", 0.3, random) == chance_notices("agent", None, random) == []


def test_an_agent_worse_than_chance_is_named_with_both_numbers() -> None:
    (notice,) = chance_notices("agent", 0.17, 0.2162)
    assert notice.startswith("agent reaches fewer goals than random actions (0.170 against 0.216)")
