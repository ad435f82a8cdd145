"""Settings of the whole suite, and trained runs for tests that only read one."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# The same examples every time: a failure must not come and go. No deadline: machines are noisy.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

os.environ.setdefault("OMP_NUM_THREADS", "1")  # the models of the tests are too small for threads
os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # human rendering without a screen
os.environ.setdefault("SDL_AUDIODRIVER", "dummy")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start the longest tests first, so that parallel workers finish together."""
    items.sort(key=lambda item: item.path.name != "test_tutorials.py" and item.path.parent.name != "docs")


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A short run on `traps`, where some goals are unreachable from some states. Read-only."""
    from qrl.agents.runs.run import Run
    from tests.agents.worlds import small_settings

    path = tmp_path_factory.mktemp("trained") / "iqe"
    learner = {"min_steps": 300, "batch_size": 256, "lr": 1e-2}  # enough to reach some goals
    often = {"log_every": 100, "evaluate_every": 300, "checkpoint_every": 300}
    for _ in Run.start(small_settings(path, collector={"layout": "traps"}, learner=learner, **often)).train():
        pass
    return path


@pytest.fixture
def restored_registry() -> Iterator[None]:
    """Forget what a test registers."""
    from contextlib import ExitStack

    from qrl.common.plugins import _registries

    with ExitStack() as stack:
        for registry in _registries:
            registry.names()
            stack.enter_context(registry.restored())
        yield


@pytest.fixture(scope="module")
def training_variants() -> Iterator[None]:
    """The learner of docs/training/variants, registered for a module of tests."""
    from qrl.agents.learners.registry import LEARNERS
    from qrl.common.plugins import load_plugin

    with LEARNERS.restored():
        sys.modules.pop("docs.training_variants", None)  # another module of tests may have forgotten it
        load_plugin("docs.training_variants")
        yield
