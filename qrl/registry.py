"""The registry of Q-models: by name, from this package and from plugins.

A plugin is a module that registers heads or Q-models with the decorators below. It is found through the entry-point
group `qrl.q_models` of an installed distribution, or named to `load_plugin`. Nothing here imports torch before a model
is asked for.
"""

import importlib
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

from pydantic import create_model

from qrl.common.errors import ConfigError
from qrl.common.names import unknown_name
from qrl.common.settings import Settings
from qrl.errors import RegistryError
from qrl.spec import QModelSpec

if TYPE_CHECKING:
    from qrl.q_models.base import QModel

ENTRY_POINTS = "qrl.q_models"
_BUILTIN = ("qrl.heads", "qrl.q_models")  # importing these registers the models of this package
_GIVEN = {"self", "spec", "head", "input_size", "discount"}  # arguments that are not parameters of a model

Class = TypeVar("Class", bound=type)


@dataclass(frozen=True)
class Registration:
    """A name, the class that it stands for, and the defaults that belong to the name."""

    name: str
    cls: type
    is_head: bool
    family: str
    defaults: Mapping[str, Any]
    origin: str

    @cached_property
    def parameters(self) -> type[Settings]:
        """The model's parameters as settings: names, types, ranges, defaults and help, from the signatures."""
        fields = _signature(self.cls)
        if self.is_head:
            from qrl.q_models.latent import LatentQModel, LatentSize

            encoder = {"latent_size": (LatentSize, 256)} | _signature(LatentQModel)
            for key in fields.keys() & encoder.keys():
                raise RegistryError(f"model {self.name}: its head's parameter {key!r} is also the encoder's; rename it")
            fields |= encoder
        for key, value in self.defaults.items():
            if key not in fields:
                raise RegistryError(f"model {self.name}: {unknown_name('parameter', key, fields)}")
            fields[key] = (fields[key][0], value)
        made: type[Settings] = create_model(self.name, __base__=Settings, **fields)  # type: ignore[call-overload]
        return made

    def make(self, spec: QModelSpec, params: Mapping[str, Any]) -> "QModel":
        checked = self.parameters.from_values(params, f"model {self.name}")
        values = {key: getattr(checked, key) for key in self.parameters.model_fields}
        if not self.is_head:
            return self.cls(spec, **values)
        from qrl.q_models.latent import LatentQModel

        own = {key: values.pop(key) for key in _signature(self.cls)}
        if "discount" in inspect.signature(self.cls).parameters:
            own["discount"] = spec.discount
        return LatentQModel(spec, self.cls(values.pop("latent_size"), **own), **values)


_registrations: dict[str, Registration] = {}
_plugin_failures: dict[str, str] | None = None  # None: entry points have not been looked at
_origin: str | None = None  # what is being loaded, if not this package


def register_head(name: str, *, family: str | None = None, **defaults: Any) -> Callable[[Class], Class]:
    """Register a `Head` subclass as the Q-model `name`: an encoder with a latent for each action, and the head.

    `defaults` are values of the parameters of head or encoder that belong to the name.
    """
    return _register(name, family, defaults, is_head=True)


def register_q_model(name: str, *, family: str | None = None, **defaults: Any) -> Callable[[Class], Class]:
    """Register a `QModel` subclass, called as cls(spec, **parameters), under `name`."""
    return _register(name, family, defaults, is_head=False)


def _register(name: str, family: str | None, defaults: Mapping[str, Any], is_head: bool) -> Callable[[Class], Class]:
    def decorate(cls: Class) -> Class:
        builtin = cls.__module__.split(".")[0] == "qrl"
        if not builtin:
            _load_builtin()
        origin = "qrl" if builtin else _origin or cls.__module__
        known = _registrations.get(name)
        # The same class defined again, as when a notebook's cell is run twice, replaces itself.
        again = known and (known.cls.__module__, known.cls.__qualname__) == (cls.__module__, cls.__qualname__)
        if known and not again:
            raise RegistryError(f"the model name {name!r} is taken by {known.origin}; choose another")
        _registrations[name] = Registration(name, cls, is_head, family or cls.__name__, defaults, origin)
        return cls

    return decorate


def make_q_model(name: str, spec: QModelSpec, **params: Any) -> "QModel":
    """A new Q-model of a registered name; `params` are checked against its signature."""
    return find(name).make(spec, params)


def list_q_models() -> list[str]:
    """The names of all Q-models, those of installed plugins included."""
    _load_builtin()
    _load_entry_points()
    return sorted(_registrations)


def find(name: str) -> Registration:
    _load_builtin()
    if name not in _registrations:
        _load_entry_points()
    if name not in _registrations:
        failed = "".join(f"; {message}" for message in plugin_failures())
        raise RegistryError(
            f"{unknown_name('model', name, _registrations)}{failed}; "
            "a model of your own needs its plugin: install it, or name its module with --plugin"
        )
    return _registrations[name]


def plugin_failures() -> list[str]:
    """What went wrong with installed plugins: one message for each that could not be loaded."""
    return [
        f"the plugin {plugin} could not be loaded: {reason}" for plugin, reason in (_load_entry_points() or {}).items()
    ]


def load_plugin(module: str) -> None:
    """Import a module that registers models, from the Python path or the working directory."""
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))  # commands do not have it there, as `python -m` has
    with _loading(module):
        try:
            importlib.import_module(module)
        except Exception as error:  # whatever a plugin does wrong, the message names it
            raise RegistryError(
                f"the plugin {module} could not be loaded: {type(error).__name__}: {error}; is it on the Python path?"
            ) from error


def _load_builtin() -> None:
    for module in _BUILTIN:
        importlib.import_module(module)


def _load_entry_points() -> dict[str, str]:
    """Load installed plugins once; one that fails must not keep the others from working."""
    global _plugin_failures
    if _plugin_failures is None:
        _plugin_failures = {}
        for entry_point in metadata.entry_points(group=ENTRY_POINTS):
            plugin = entry_point.value
            if entry_point.dist is not None:
                plugin = f"{entry_point.dist.name} {entry_point.dist.version} ({entry_point.value})"
            try:
                with _loading(plugin):
                    entry_point.load()
            except Exception as error:
                _plugin_failures[plugin] = f"{type(error).__name__}: {error}"
    return _plugin_failures


@contextmanager
def _loading(origin: str) -> Iterator[None]:
    """Name the origin of what is registered inside; if loading fails, none of it stays."""
    global _origin
    _load_builtin()
    before = dict(_registrations)
    _origin = origin
    try:
        yield
    except BaseException:
        _registrations.clear()
        _registrations.update(before)
        raise
    finally:
        _origin = None


def _signature(cls: type) -> dict[str, tuple[Any, Any]]:
    """Each parameter's annotation and default (... where there is none)."""
    hints = get_type_hints(cls.__init__, include_extras=True)  # type: ignore[misc]
    fields = {}
    for name, parameter in inspect.signature(cls).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise ConfigError(f"{cls.__name__}: name its parameters one by one: *args and **kwargs cannot be checked")
        if name not in _GIVEN:
            default = ... if parameter.default is parameter.empty else parameter.default
            fields[name] = (hints.get(name, Any), default)
    return fields
