"""Settings of the whole suite."""

import os

from hypothesis import settings

# The same examples every time: a failure must not come and go. No deadline: machines are noisy.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # human rendering without a screen
os.environ.setdefault("SDL_AUDIODRIVER", "dummy")
