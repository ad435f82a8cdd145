"""What the tests of studies share."""

from collections.abc import Iterator

import pytest

from qrl.agents.evaluation.metrics import METRICS


@pytest.fixture
def plugin_metrics() -> Iterator[None]:
    """Metrics that a test registers are gone after it."""
    before = list(METRICS)
    yield
    METRICS[:] = before
