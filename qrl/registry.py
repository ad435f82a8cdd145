"""The registry of Q-models by name: those of this package and those of plugins.

Nothing here imports torch until a model is requested.
"""

import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import resources
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints

from pydantic import AfterValidator, create_model

from qrl.common.errors import ConfigError, RegistryError, UserError
from qrl.common.names import unknown_name
from qrl.common.plugins import Registry
from qrl.common.settings import Settings
from qrl.errors import ContractError
from qrl.spec import QModelSpec

if TYPE_CHECKING:
    from qrl.q_models.base import QModel

_BUILTIN = ("qrl.heads", "qrl.q_models")  # importing the modules in these packages registers qrl's models
_REGISTERED = re.compile(r'^@?register_(?:head|q_model|alias)\("([^"]+)"', re.MULTILINE)
_NOT_PARAMETERS = {"self", "spec", "head", "input_size", "discount"}  # arguments that the registry supplies

Class = TypeVar("Class", bound=type)


@dataclass(frozen=True)
class Registration:
    """A name, the class that it stands for, and the defaults that belong to the name.

    An alias is a name of the model `alias_of` with some parameters `fixed`. Legacy aliases are listed separately.
    """

    name: str
    cls: type
    is_head: bool
    family: str
    defaults: Mapping[str, Any]
    origin: str
    alias_of: str | None = None
    fixed: Mapping[str, Any] = field(default_factory=dict)
    legacy: bool = False

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
        for key, value in {**self.defaults, **self.fixed}.items():
            if key not in fields:
                raise RegistryError(f"model {self.name}: {unknown_name('parameter', key, fields)}")
            annotation = fields[key][0]
            if key in self.fixed:
                annotation = Annotated[annotation, AfterValidator(self._check_fixed(value))]
            fields[key] = (annotation, value)
        settings: type[Settings] = create_model(self.name, __base__=Settings, **fields)  # type: ignore[call-overload]
        return settings

    def _check_fixed(self, fixed: Any) -> Callable[[Any], Any]:
        def check(value: Any) -> Any:
            if value != fixed:
                raise ValueError(f"the name {self.name} means {fixed!r}; to choose it, use the model {self.alias_of}")
            return value

        return check

    def sized(self, params: Mapping[str, Any], width: int, latent_size: int | None) -> dict[str, Any]:
        """All parameters, with the sizes of qrl's networks set to `width` and `latent_size` unless `params` set them.

        That applies to qrl's own models and to every head, because a head's encoder is qrl's. A plugin's complete
        Q-model keeps its own defaults. The widest hidden layers get `width`; in a network without latents, narrower
        hidden layers get `latent_size`.
        """
        values = self.parameters.from_values(params, f"model {self.name}").model_dump()
        if not self.is_head and self.origin != "qrl":
            return values
        narrow = None
        if "latent_size" not in values:
            narrow = latent_size
        elif latent_size is not None and "latent_size" not in params:
            values["latent_size"] = latent_size
        if "hidden_sizes" not in params:
            sizes = values["hidden_sizes"]
            values["hidden_sizes"] = [width if size == max(sizes) else narrow or size for size in sizes]
        return values

    def make(self, spec: QModelSpec, params: Mapping[str, Any]) -> "QModel":
        """Build the model from `params`, which may be those of a checkpoint.

        Checkpoints of earlier versions may contradict a parameter that an alias fixes; `parameters` and `sized`, which
        check what a user gives, refuse that.
        """
        if self.alias_of is not None:
            return find(self.alias_of).make(spec, {**self.fixed, **params})
        checked = self.parameters.from_values(params, f"model {self.name}")
        values = {key: getattr(checked, key) for key in self.parameters.model_fields}
        if self.origin == "qrl":
            return self._build(spec, values)
        try:
            return self._build(spec, values)
        except UserError:
            raise
        except Exception as error:  # plugins may fail in any way
            import torch

            # On the meta device, reading the value of a weight fails, too; callers then build the model in memory.
            kind = NotImplementedError if torch.get_default_device().type == "meta" else ContractError
            reason = f"{type(error).__name__}: {error}"
            raise kind(f"model {self.name}: {self.cls.__name__} cannot be built: {reason}") from error

    def _build(self, spec: QModelSpec, values: dict[str, Any]) -> "QModel":
        if not self.is_head:
            model: QModel = self.cls(spec, **values)
            return model
        from qrl.q_models.latent import LatentQModel

        head_values = {key: values.pop(key) for key in _signature(self.cls)}
        if "discount" in inspect.signature(self.cls).parameters:
            head_values["discount"] = spec.discount
        return LatentQModel(spec, self.cls(values.pop("latent_size"), **head_values), **values)


def _load_builtin() -> None:
    for name in _BUILTIN:
        package = importlib.import_module(name)
        for module in pkgutil.iter_modules(package.__path__, f"{name}."):
            importlib.import_module(module.name)


MODELS: Registry[Registration] = Registry("model", "qrl.q_models", _load_builtin)


def register_head(name: str, *, family: str | None = None, **defaults: Any) -> Callable[[Class], Class]:
    """Register a `Head` subclass as the Q-model `name`: an encoder with one latent per action, followed by the head.

    `defaults` are parameter values, of the head or the encoder, that belong to the name.
    """

    def decorate(cls: Class) -> Class:
        from qrl.heads.base import Head

        _check_base(name, cls, Head, "register_head", "register_q_model")
        declared = inspect.getattr_static(cls, "guaranteed_quasimetric", None)
        if not isinstance(declared, bool | property):
            raise RegistryError(
                f"model {name}: the head {cls.__name__} does not declare whether it is a quasimetric; write "
                f"guaranteed_quasimetric = True or False in the class (got {declared!r}); __init__ may override it"
            )
        return _register(name, cls, family, defaults, is_head=True)

    return decorate


def register_q_model(name: str, *, family: str | None = None, **defaults: Any) -> Callable[[Class], Class]:
    """Register a `QModel` subclass, called as cls(spec, **parameters), under `name`."""

    def decorate(cls: Class) -> Class:
        from qrl.q_models.base import QModel

        _check_base(name, cls, QModel, "register_q_model", "register_head")
        return _register(name, cls, family, defaults, is_head=False)

    return decorate


def _check_base(name: str, cls: object, base: type, decorator: str, other: str) -> None:
    if not isinstance(cls, type) or not issubclass(cls, base):
        label = getattr(cls, "__name__", repr(cls))
        raise RegistryError(
            f"model {name}: {label} is not a subclass of {base.__name__}; write class {label}({base.__name__}), with "
            f"{base.__name__} from {base.__module__.rpartition('.')[0]}, under @{decorator}, or use @{other}"
        )


def _register(name: str, cls: Class, family: str | None, defaults: Mapping[str, Any], is_head: bool) -> Class:
    MODELS.add(name, Registration(name, cls, is_head, family or cls.__name__, defaults, MODELS.origin(cls)))
    return cls


def register_alias(name: str, model: str, /, *, legacy: bool = False, **fixed: Any) -> None:
    """Register `name` as the already registered `model` with the parameters `fixed`, which cannot be changed.

    `model` may itself be an alias, whose parameters stay fixed.
    """
    target = MODELS.entries[model]
    fixed = {**target.fixed, **fixed}
    MODELS.entries[name] = replace(target, name=name, alias_of=target.alias_of or model, fixed=fixed, legacy=legacy)


def make_q_model(name: str, spec: QModelSpec, **params: Any) -> "QModel":
    """Build a Q-model by its registered name; `params` are checked against its signature."""
    registration = find(name)
    registration.parameters.from_values(params, f"model {name}")
    return registration.make(spec, params)


def list_q_models() -> list[str]:
    """The names of all Q-models, including aliases and the models of installed plugins."""
    return MODELS.names()


def builtin_names() -> list[str]:
    """The names of qrl's own models but for legacy aliases, read from the sources: importing them imports torch."""
    sources = (
        source.read_text("utf-8")
        for package in _BUILTIN
        for source in resources.files(package.partition(".")[0]).joinpath(package.partition(".")[2]).iterdir()
        if source.name.endswith(".py")
    )
    return sorted(name for text in sources for name in _REGISTERED.findall(text))


def find(name: str) -> Registration:
    return MODELS.find(name, listed=lambda registration: not registration.legacy)


def _signature(cls: type) -> dict[str, tuple[Any, Any]]:
    """The annotation and default (... if there is none) of each parameter."""
    hints = get_type_hints(cls.__init__, include_extras=True)  # type: ignore[misc]
    fields = {}
    for name, parameter in inspect.signature(cls).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise ConfigError(f"{cls.__name__}: name its parameters one by one: *args and **kwargs cannot be checked")
        if name not in _NOT_PARAMETERS:
            default = ... if parameter.default is parameter.empty else parameter.default
            fields[name] = (hints.get(name, Any), default)
    return fields
