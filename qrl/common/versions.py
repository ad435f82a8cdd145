"""Versions of qrl and of the packages that decide its numbers."""

from importlib import metadata

import qrl


def versions(*packages: str) -> dict[str, str]:
    """The versions of qrl, of what its data depends on, and of more `packages`, by name."""
    names = ("numpy", "gymnasium", "minigrid", *packages)
    return {"qrl": qrl.__version__, **{name: metadata.version(name) for name in names}}
