"""The registry of learners by name: qrl's own, a module each, and those of plugins.

Nothing here imports torch until a learner is built: the settings of qrl's own are known without.
"""

import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from qrl.agents.learners.settings import (
    CmdSettings,
    GcbcSettings,
    IqlSettings,
    LearnerSettings,
    MadSettings,
    MboldSettings,
    QrlSettings,
    RegressionSettings,
    TmdSettings,
)
from qrl.common.errors import RegistryError, UserError
from qrl.common.plugins import Registry, registered_settings

if TYPE_CHECKING:
    from torch import Tensor

    from qrl.agents.learners.base import Learner
    from qrl.q_models.base import QModel

Class = TypeVar("Class", bound=type)

# The name of each is that of its module.
_BUILTIN: dict[str, type[LearnerSettings]] = {
    settings.model_fields["name"].default: settings
    for settings in (
        MboldSettings,
        QrlSettings,
        MadSettings,
        CmdSettings,
        TmdSettings,
        IqlSettings,
        GcbcSettings,
        RegressionSettings,
    )
}


@dataclass(frozen=True)
class LearnerRegistration:
    name: str
    cls: "type[Learner]"
    settings: type[LearnerSettings]
    origin: str

    def build(
        self, model: "QModel", observations: "Tensor", dataset: Any, settings: LearnerSettings, seed: int
    ) -> "Learner":
        """A learner at its first step; `observations` are the scaled states of the dataset."""
        try:
            return self.cls(model, observations, dataset, settings, seed)
        except UserError:
            raise
        except Exception as error:
            if self.origin == "qrl":
                raise
            reason = f"{type(error).__name__}: {error}"  # plugins may fail in any way
            raise RegistryError(f"learner {self.name}: {self.cls.__name__} cannot be built: {reason}") from error

    @property
    def meaning(self) -> str:
        """What it minimizes: the docstring of its module, or of its class."""
        module = inspect.getmodule(self.cls)
        text = (module and self.origin == "qrl" and module.__doc__) or self.cls.__doc__ or ""
        return inspect.cleandoc(text)


def _load_builtin() -> None:
    for name in _BUILTIN:
        importlib.import_module(f"qrl.agents.learners.{name}")


LEARNERS: Registry[LearnerRegistration] = Registry("learner", "qrl.learners", _load_builtin)


def register_learner(name: str, settings: type[LearnerSettings] | None = None) -> Callable[[Class], Class]:
    """Register a `Learner` subclass under `name`, with the class of its settings.

    It is called as cls(model, observations, dataset, settings, seed).
    """

    def decorate(cls: Class) -> Class:
        from qrl.agents.learners.base import Learner

        if not isinstance(cls, type) or not issubclass(cls, Learner):
            label = getattr(cls, "__name__", repr(cls))
            raise RegistryError(
                f"learner {name}: {label} is not a subclass of Learner; write class {label}(Learner), with Learner "
                "from qrl.agents.learners.base"
            )
        checked = registered_settings(LEARNERS, name, cls.__name__, settings, LearnerSettings)
        LEARNERS.add(name, LearnerRegistration(name, cls, checked, LEARNERS.origin(cls)))
        return cls

    return decorate


def find_learner(name: str) -> LearnerRegistration:
    if name in _BUILTIN:
        importlib.import_module(f"qrl.agents.learners.{name}")  # and none of the others
        return LEARNERS.entries[name]
    return LEARNERS.find(name)


def find_settings(name: str) -> type[LearnerSettings]:
    """The settings of a learner; those of qrl's own are found without importing torch."""
    return _BUILTIN[name] if name in _BUILTIN else find_learner(name).settings


def list_learners() -> list[str]:
    """The names of all learners, including those of installed plugins."""
    return LEARNERS.names()


def builtin_learners(data: str | None = None) -> list[str]:
    """The names of qrl's own learners, found without importing torch; `data`: only those that learn from this kind."""
    return [name for name, settings in _BUILTIN.items() if data in (None, settings.DATA)]


def owners(key: str, data: str) -> list[str]:
    """The learners of this kind of data that have a key, among qrl's own and those of loaded plugins."""
    known = _BUILTIN | {name: entry.settings for name, entry in LEARNERS.entries.items()}
    return [name for name, settings in known.items() if data == settings.DATA and key in settings.model_fields]
