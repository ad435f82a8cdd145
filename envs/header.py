"""The header of a trajectory dataset: where it comes from, and which spaces and world it belongs to."""

from typing import Any

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from qrl.common.limits import MAX_ACTIONS, MAX_OBSERVATION_DIM
from qrl.common.settings import Settings
from qrl.common.versions import versions


class Spaces(Settings):
    """Observation dimension and number of actions: declared, never inferred from the data."""

    observation_dim: int = Field(ge=1, le=MAX_OBSERVATION_DIM)
    num_actions: int = Field(ge=1, le=MAX_ACTIONS)


class WorldHeader(Settings):
    """The registered world that the data comes from: its parameters, and the hash of what they build."""

    name: str
    params: dict[str, Any]
    hash: str
    noisy: bool = False  # every visit of a state has an observation of its own


class TrajectoryHeader(Settings):
    """Provenance of a dataset. A layout is stored as its text, any other world by name and parameters."""

    source: str
    spaces: Spaces
    env_id: str | None = None
    layout: str | None = None
    layout_name: str | None = None
    world: WorldHeader | None = None
    collector: dict[str, int | float | str] | None = None
    versions: dict[str, str] = Field(default_factory=versions)

    @model_serializer(mode="wrap")
    def _without_world(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Data without a registered world has the header, and so the hash, that release 0.2 gave it."""
        values: dict[str, Any] = serialize(self)
        if values.get("world") is None:
            values.pop("world", None)
        return values
