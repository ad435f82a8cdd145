"""Settings from pydantic models: defaults in code, differences in YAML, key=value on the command line.

Each hyperparameter is one field, written once with its default, its range and its help text.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from types import NoneType
from typing import Any, ClassVar, Self, get_args

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.fields import FieldInfo

from qrl.common.errors import ConfigError, UserError
from qrl.common.files import read_text
from qrl.common.names import unknown_name


class Settings(BaseModel):
    """Base of all settings: unknown keys are refused, values are checked, objects do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    CONFIGS: ClassVar[str] = ""  # the folder of its built-in configs

    @classmethod
    def load(cls, config: str | None = None, overrides: Sequence[str] = ()) -> Self:
        """Defaults, changed by a YAML file (a path or a built-in name), changed by key=value overrides."""
        values = read_config(config, cls.CONFIGS) if config is not None else {}
        for override in overrides:
            _override(cls, values, override)
        return cls.from_values(values, config if config is not None else "settings")

    @classmethod
    def from_values(cls, values: Mapping[str, Any], source: str, error: type[UserError] = ConfigError) -> Self:
        """Settings from keys and values; `source` says in messages where they stand."""
        try:
            return cls.model_validate(dict(values))
        except ValidationError as invalid:
            raise error(f"{source}: {_explain(cls, invalid)}") from None

    @classmethod
    def help(cls) -> str:
        """One entry for each key: its default and meaning, for --help."""
        lines = []
        for key, field in _leaves(cls):
            default = "required" if field.is_required() else f"default: {field.get_default(call_default_factory=True)}"
            lines.append(f"  {key:<22} {field.description or ''} ({default})")
        return "\n".join(lines)


def read_config(config: str, folder: str = "") -> dict[str, Any]:
    """The mapping in a YAML file, given by its path or by the name of a built-in config in `folder`.

    A file with `include: NAME` changes another config, given in the same way.
    """
    chain = [config]
    values = _read_yaml(config, folder)
    while (base := values.pop("include", None)) is not None:
        if not isinstance(base, str) or base in chain:
            raise ConfigError(f"{chain[-1]}: include must be the name of another config (got {base!r})")
        chain.append(base)
        values = merge(_read_yaml(base, folder), values)
    return values


def merge(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with `changes` in it, group by group; neither is touched."""
    merged = dict(base)
    for key, value in changes.items():
        below = merged.get(key)
        merged[key] = merge(below, value) if isinstance(below, Mapping) and isinstance(value, Mapping) else value
    return merged


def _read_yaml(config: str, folder: str) -> dict[str, Any]:
    path = Path(config)
    text = read_text(path) if path.suffix in {".yaml", ".yml"} or path.is_file() else _read_builtin(config, folder)
    try:
        values = _parse_yaml(text)
    except _YAML_ERRORS as error:
        raise ConfigError(f"{config} is not valid YAML: {error}") from None
    if values is None:
        return {}
    if not isinstance(values, dict) or not all(isinstance(key, str) for key in values):
        raise ConfigError(f"{config}: expected 'key: value' lines at the top level")
    return values


_COMMANDS = {"data": "collect-dataset", "train": "train-agent", "graphs": "train-graph", "studies": "sweep-agents"}


def _read_builtin(config: str, folder: str) -> str:
    """The text of a built-in config; its folder may be left out where the command implies it."""
    root = resources.files("qrl.configs")
    name = config.removeprefix(f"{folder}/")
    file = root.joinpath(folder, f"{name}.yaml")
    if file.is_file():
        return file.read_text("utf-8")
    elsewhere = config.partition("/")[0]
    if elsewhere in _COMMANDS and elsewhere != folder and root.joinpath(f"{config}.yaml").is_file():
        raise ConfigError(f"config {config!r} is for {_COMMANDS[elsewhere]}, not for this command")
    entries = root.joinpath(folder).iterdir() if root.joinpath(folder).is_dir() else ()
    known = [entry.name.removesuffix(".yaml") for entry in entries if entry.name.endswith(".yaml")]
    raise ConfigError(f"{unknown_name('config', name, known)}; or give the path of a YAML file")


class _Loader(yaml.SafeLoader):
    """Safe YAML that reads 3e-4 as a number and off as a word, and refuses a key written twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.constructor.ConstructorError(None, None, f"the key {key!r} stands twice", node.start_mark)
        return super().construct_mapping(node, deep)


# YAML 1.1, which PyYAML follows, reads on, off, yes and no as true and false; here they are words.
_Loader.yaml_implicit_resolvers = {
    letter: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:bool"]
    for letter, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("^(true|True|false|False)$"), list("tTfF"))
# It also wants a dot and a sign in 3.0e-4 and reads 3e-4 as text.
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$"), list("-+.0123456789")
)


# An impossible date or a badly tagged number is a ValueError, deep nesting a RecursionError.
_YAML_ERRORS = (yaml.YAMLError, ValueError, RecursionError)


def _parse_yaml(text: str) -> Any:
    return _Loader(text).get_single_data()


class _Dumper(yaml.SafeDumper):
    """Quotes what `_Loader` would not read as text."""

    yaml_implicit_resolvers = _Loader.yaml_implicit_resolvers


def dump_yaml(values: Mapping[str, Any]) -> str:
    """YAML that reads back as the same values."""
    return yaml.dump(dict(values), Dumper=_Dumper, sort_keys=False)


def _override(cls: type[Settings], values: dict[str, Any], override: str) -> None:
    """Write one `dotted.key=value` into the nested `values`."""
    dotted, equals, text = override.partition("=")
    if not equals or not dotted:
        raise ConfigError(f"{override!r} is not of the form key=value")
    *parents, last = dotted.split(".")
    for depth, key in enumerate(parents):
        values = values.setdefault(key, {})
        if not isinstance(values, dict):
            raise ConfigError(f"{dotted}: {'.'.join(parents[: depth + 1])} is a value, not a group of keys")
    try:
        parsed = _parse_yaml(text)
    except _YAML_ERRORS:
        parsed = text
    # A text field takes the words as typed: run=007 is not the number 7.
    keep_text = _is_text(_leaf(cls, dotted)) and parsed is not None
    values[last] = text if keep_text else parsed


def _is_text(field: FieldInfo | None) -> bool:
    if field is None:
        return False
    choices = set(get_args(field.annotation) or (field.annotation,)) - {NoneType}
    return choices <= {str, Path}


def _leaves(cls: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    for name, field in cls.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from _leaves(field.annotation, f"{prefix}{name}.")
        else:
            yield prefix + name, field


def _leaf(cls: type[BaseModel], dotted: str) -> FieldInfo | None:
    return dict(_leaves(cls)).get(dotted)


def _explain(cls: type[BaseModel], error: ValidationError) -> str:
    """Every problem in one line: the key, what is wrong, and the nearest key where it is unknown."""
    problems = []
    for detail in error.errors():
        key = ".".join(str(part) for part in detail["loc"])
        if detail["type"] == "extra_forbidden":
            problems.append(unknown_name("key", key, [known for known, _ in _leaves(cls)]))
        else:
            message = detail["msg"].removeprefix("Value error, ")
            message = message[0].lower() + message[1:]
            # A rule between keys names them itself; what was given to all of them would drown it.
            problems.append(f"{key}: {message} (got {detail['input']!r})" if key else message)
    return "; ".join(problems)
