"""The registry of worlds by name: qrl's own, a module each, and those of plugins."""

import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from pydantic import Field

from qrl.common.errors import RegistryError, UserError
from qrl.common.plugins import Registry, registered_settings
from qrl.common.settings import Settings
from qrl.envs.errors import DatasetError
from qrl.envs.world import World

Builder = Callable[[Any], World]
BuilderT = TypeVar("BuilderT", bound=Builder)

_BUILTIN = ("layout", "maze", "minigrid", "noisy", "teleport", "unseen-doors")  # the name of each is that of its module


class WorldSettings(Settings):
    """The parameters of a world; a world adds its own keys in a subclass."""

    name: str = Field("", description="registered name of the world; list-worlds shows them")

    @classmethod
    def names(cls, key: str) -> list[str]:
        return builtin_worlds() if key == "name" else super().names(key)

    def resolved(self) -> Self:
        """The same parameters without reference to files, from which a dataset builds the world again anywhere."""
        return self

    def bounded(self, states: int) -> Self:
        """The same parameters for a world known to have so many states; one that searches for them stops there."""
        return self

    @property
    def params(self) -> dict[str, Any]:
        """The world's own keys."""
        return self.model_dump(mode="json", exclude={"name"})


@dataclass(frozen=True)
class WorldRegistration:
    name: str
    cls: Builder
    settings: type[WorldSettings]
    origin: str

    def build(self, settings: WorldSettings) -> World:
        """The world of resolved settings."""
        try:
            world = self.cls(settings)
        except UserError:
            raise
        except Exception as error:
            if self.origin == "qrl":
                raise
            reason = f"{type(error).__name__}: {error}"  # plugins may fail in any way
            raise RegistryError(f"world {self.name}: {self.cls.__name__} cannot be built: {reason}") from error
        if not isinstance(world, World):
            raise RegistryError(
                f"world {self.name}: {self.cls.__name__} returns a {type(world).__name__}, not a World, of "
                "qrl.envs.world"
            )
        return world

    def rebuild(self, params: Mapping[str, Any], states: int | None = None) -> World:
        """The world of parameters in a dataset, which are not resolved: no file that they name is ever read.

        states: how many it has, if the dataset tells.
        """
        source = f"the world {self.name} in the header of the dataset"
        settings = self.settings.from_values({"name": self.name, **params}, source, DatasetError)
        return self.build(settings if states is None else settings.bounded(states))

    @property
    def meaning(self) -> str:
        return inspect.cleandoc(self.cls.__doc__ or "")


def _load_builtin() -> None:
    for name in _BUILTIN:
        importlib.import_module(f"qrl.envs.worlds.{name.replace('-', '_')}")


WORLDS: Registry[WorldRegistration] = Registry("world", "qrl.worlds", _load_builtin)


def register_world(name: str, settings: type[WorldSettings] | None = None) -> Callable[[BuilderT], BuilderT]:
    """Register a function that builds a `World` from its settings under `name`, with the class of these settings."""

    def decorate(build: BuilderT) -> BuilderT:
        if not callable(build):
            raise RegistryError(f"world {name}: {build!r} is not a function that builds a World")
        checked = registered_settings(WORLDS, name, build.__name__, settings, WorldSettings)
        WORLDS.add(name, WorldRegistration(name, build, checked, WORLDS.origin(build)))
        return build

    return decorate


def find_world(name: str) -> WorldRegistration:
    return WORLDS.find(name)


def builtin_worlds() -> list[str]:
    """The names of qrl's own worlds; nothing is imported."""
    return list(_BUILTIN)


def list_worlds() -> list[str]:
    """The names of all worlds, including those of installed plugins."""
    return WORLDS.names()


def make_world(name: str, **params: Any) -> World:
    """Build a registered world; `params` are its keys, as world.KEY on the command line."""
    registration = find_world(name)
    settings = registration.settings.from_values({"name": name, **params}, f"world {name}")
    return registration.build(settings.resolved())
