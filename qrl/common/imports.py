"""Modules of the user's own project."""

import sys
from pathlib import Path


def search_working_directory() -> None:
    """Let imports find modules in the working directory, which commands lack and `python -m` has."""
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
