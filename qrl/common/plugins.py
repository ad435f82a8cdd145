"""Plugins: registries of named classes, and the modules of a user's own project that add to them.

A plugin is a module that registers models, learners or worlds with their decorators. It is found through an entry point
of an installed distribution, or named to `load_plugin`.
"""

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from qrl.common.errors import RegistryError
from qrl.common.imports import search_working_directory
from qrl.common.names import nearest_name, unknown_message

if TYPE_CHECKING:
    from qrl.common.settings import Settings


class Registered(Protocol):
    """What a registry knows of a name: at least its class or function and where it came from."""

    @property
    def cls(self) -> Callable[..., Any]: ...

    @property
    def origin(self) -> str: ...


Entry = TypeVar("Entry", bound=Registered)
SettingsT = TypeVar("SettingsT", bound="Settings")

_registries: list["Registry"] = []  # type: ignore[type-arg]
_origin: str | None = None  # the plugin that is being loaded, if any


class Registry(Generic[Entry]):
    """Entries by name: qrl's own and those of plugins.

    kind: what a name stands for, in messages. group: the entry points of plugins. load_builtin: registers qrl's own.
    """

    def __init__(self, kind: str, group: str, load_builtin: Callable[[], None]) -> None:
        self.kind = kind
        self.group = group
        self.load_builtin = load_builtin
        self.entries: dict[str, Entry] = {}
        self._failures: dict[str, str] | None = None  # None: entry points have not been loaded yet
        _registries.append(self)

    def origin(self, cls: Callable[..., Any]) -> str:
        """Where a class or function that is about to be registered comes from."""
        if cls.__module__.split(".")[0] == "qrl":
            return "qrl"
        self.load_builtin()  # so that a plugin cannot take the name of one of qrl's own
        return _origin or cls.__module__

    def add(self, name: str, entry: Entry) -> None:
        known = self.entries.get(name)
        # The same class defined again, as when a notebook cell is run twice, replaces itself.
        if known is not None and not _same_class(known.cls, entry.cls):
            raise RegistryError(f"the {self.kind} name {name!r} is taken by {known.origin}; choose another")
        self.entries[name] = entry

    def names(self) -> list[str]:
        """All names, including those of installed plugins."""
        self.load_builtin()
        self._load_entry_points()
        return sorted(self.entries)

    def find(self, name: str, listed: Callable[[Entry], bool] = lambda entry: True) -> Entry:
        """The entry of a name; an error lists the names that are `listed`."""
        self.load_builtin()
        if name not in self.entries:
            self._load_entry_points()
        if name not in self.entries:
            names = sorted(name for name, known in self.entries.items() if listed(known))
            message = unknown_message(self.kind, name, nearest_name(name, self.entries), names)
            failures = "".join(f"; {failure}" for failure in self.failures())
            raise RegistryError(
                f"{message}{failures}; a {self.kind} of your own needs its plugin: install it, or name its module with "
                "--plugin"
            )
        return self.entries[name]

    def failures(self) -> list[str]:
        """One message for each installed plugin that could not be loaded."""
        return [
            f"the plugin {plugin} could not be loaded: {reason}" for plugin, reason in self._load_entry_points().items()
        ]

    def _load_entry_points(self) -> dict[str, str]:
        """Load installed plugins once; a failing one must not disable the others."""
        if self._failures is None:
            self._failures = {}
            for entry_point in metadata.entry_points(group=self.group):
                plugin = entry_point.value
                if entry_point.dist is not None:
                    plugin = f"{entry_point.dist.name} {entry_point.dist.version} ({entry_point.value})"
                try:
                    with _loading(plugin):
                        entry_point.load()
                except Exception as error:
                    self._failures[plugin] = f"{type(error).__name__}: {error}"
        return self._failures

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Forget what is registered inside, as tests of plugins need."""
        self.load_builtin()
        before = dict(self.entries)
        try:
            yield
        finally:
            self.entries = before


def _same_class(known: Callable[..., Any], cls: Callable[..., Any]) -> bool:
    return (known.__module__, known.__qualname__) == (cls.__module__, cls.__qualname__)


def registered_settings(
    registry: Registry[Any], name: str, label: str, settings: Any, base: "type[SettingsT]"
) -> "type[SettingsT]":
    """The settings of what is registered under `name`, which they then name unless they say otherwise.

    label: the name of the registered class or function. Refused unless they are a subclass of `base` with defaults.
    """
    from pydantic import create_model  # settings exist, so that it has been imported; commands start without it

    kind = registry.kind
    if not isinstance(settings, type) or not issubclass(settings, base):
        own = f"{label[:1].upper()}{label[1:]}Settings"
        raise RegistryError(
            f"{kind} {name}: {label} has no settings; write class {own}({base.__name__}), with {base.__name__} from "
            f'{base.__module__}, and @register_{kind}("{name}", {own})'
        )
    required = [key for key, field in settings.model_fields.items() if field.is_required()]
    if required:
        raise RegistryError(
            f"{kind} {name}: the key {required[0]} of {settings.__name__} has no default; give it one, so that "
            f"the name {name} is enough"
        )
    checked: type[SettingsT] = settings
    if "name" not in checked.__annotations__:
        if any(entry.settings is checked for other, entry in registry.entries.items() if other != name):
            checked = create_model(checked.__name__, __base__=checked)  # theirs keep the other name
        checked.model_fields["name"].default = name
        checked.model_rebuild(force=True)
    return checked


def load_plugin(module: str) -> None:
    """Import a module that registers models, learners or worlds, from the Python path or the working directory."""
    path = Path(module)
    if path.suffix == ".py" or len(path.parts) > 1:
        where = f", with {path.parent} on PYTHONPATH" if len(path.parts) > 1 else ""
        raise RegistryError(f"the plugin {module} is a file; name the module: --plugin {path.stem}{where}")
    search_working_directory()
    with _loading(module):
        try:
            importlib.import_module(module)
        except Exception as error:  # plugins may fail in any way
            raise RegistryError(f"the plugin {module} could not be loaded: {_reason(module, error)}") from error


def _reason(module: str, error: Exception) -> str:
    # A missing module other than the plugin itself is one that the plugin imports.
    if not isinstance(error, ModuleNotFoundError) or not f"{module}.".startswith(f"{error.name}."):
        return f"{type(error).__name__}: {error}"
    nearest = nearest_name(module, [path.stem for path in Path.cwd().glob("*.py")])
    suggestion = f" (did you mean {nearest!r}?)" if nearest else ""
    return f"there is no such module{suggestion}; run in its folder, or put that on PYTHONPATH"


@contextmanager
def _loading(origin: str) -> Iterator[None]:
    """Set the origin of what is registered inside; if loading fails, forget what the failing modules registered.

    Python drops a module that fails, but keeps those that it had imported: they would not register again.
    """
    global _origin
    outer, _origin = _origin, origin  # a plugin may load others
    before = {registry: dict(registry.entries) for registry in _registries}
    try:
        yield
    except BaseException:
        for registry in _registries:  # also those that were created inside
            imported = {name: entry for name, entry in registry.entries.items() if entry.cls.__module__ in sys.modules}
            registry.entries = before.get(registry, {}) | imported
        raise
    finally:
        _origin = outer
