"""Settings of the whole suite, and trained runs for the tests that look at one."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

# The same examples every time: a failure must not come and go. No deadline: machines are noisy.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # human rendering without a screen
os.environ.setdefault("SDL_AUDIODRIVER", "dummy")


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A short run on `traps`, in which some goals cannot be reached from some states. Only to be looked at."""
    from qrl.agents.runs.training import start, train
    from tests.agents.worlds import small_settings

    run = tmp_path_factory.mktemp("trained") / "iqe"
    learner = {"min_steps": 300, "batch_size": 256, "lr": 1e-2}  # enough to reach some goals
    for _ in train(*start(small_settings(run, collector={"layout": "traps"}, learner=learner))):
        pass
    return run
