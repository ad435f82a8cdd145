"""Settings as pydantic models: defaults in code, differences in YAML, key=value overrides on the command line.

Each hyperparameter is one field, defined once with its default, range and help text.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, ClassVar, Literal, Self, get_args, get_origin

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError, model_validator
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from qrl.common.config_files import merge, read_config
from qrl.common.errors import ConfigError, UserError
from qrl.common.files import check_path
from qrl.common.names import nearest_name, unknown_message
from qrl.common.text import MAX_LISTED, clip, shown
from qrl.common.yaml_text import MAX_DEPTH, YamlError, YamlLimitError, parse_yaml

_MAX_KEY_COLUMN = 32  # characters of a key before its meaning in --help

_PATH = AfterValidator(lambda text: str(check_path(text)) and text)
PathText = Annotated[str, _PATH]


class Settings(BaseModel):
    """Base of all settings: immutable, with checked values; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    CONFIGS: ClassVar[str] = ""  # folder of the built-in configs
    NAMED: ClassVar[tuple[str, ...]] = ()  # groups that may be given by name: world=NAME is world.name=NAME

    @model_validator(mode="before")
    @classmethod
    def _over_defaults(cls, values: Any) -> Any:
        """The keys of a group that are not given have the defaults of this group here, not of its class elsewhere."""
        if not isinstance(values, Mapping):
            return values
        merged = dict(values)
        for name, field in cls.model_fields.items():
            default, given = field.default, merged.get(name)
            if isinstance(default, Settings) and type(default) is field.annotation and isinstance(given, Mapping):
                merged[name] = merge(default.model_dump(exclude_unset=True), given)
        return merged

    @classmethod
    def load(cls, config: str | None = None, overrides: Sequence[str] = ()) -> Self:
        """Defaults, updated from a YAML file (a path or a built-in name), then by key=value overrides."""
        return cls.from_values(cls.read(config, overrides), config if config is not None else "settings")

    @classmethod
    def read(cls, config: str | None = None, overrides: Sequence[str] = ()) -> dict[str, Any]:
        """The values of a YAML file, updated by key=value overrides; not checked yet."""
        values = read_config(config, cls.CONFIGS) if config is not None else {}
        for override in overrides:
            _override(cls, values, override)
        return values

    @classmethod
    def from_values(cls, values: Mapping[str, Any], source: str, error: type[UserError] = ConfigError) -> Self:
        """Settings from a mapping; `source` names its origin in error messages."""
        try:
            return cls.model_validate(dict(values))
        except ValidationError as invalid:
            try:
                problems = _explain(cls.of_values(values), invalid)
            except UserError as undecided:  # the value that decides which keys there are is itself wrong
                raise type(undecided)(f"{source}: {undecided}") from None
            raise error(f"{source}: {problems}") from None

    @classmethod
    def of_values(cls, values: Mapping[str, Any]) -> type[Self]:
        """The settings whose keys are those that the values choose, where a value decides which keys there are."""
        return cls

    @classmethod
    def explain_unknown(cls, key: str) -> str | None:
        """What a user should know of a key that these settings lack, if that is more than its spelling."""
        return None

    @classmethod
    def siblings(cls, key: str) -> list[str]:
        """The keys of the group that `key` is in, or of the top level if there is no such group."""
        return _siblings(cls, key)

    @classmethod
    def nearest_key(cls, key: str) -> str | None:
        """The key that a user most likely means by `key`, if any is similar."""
        keys = cls.leaves()
        nearest = key if key in keys else _nearest_key(cls, key)
        if nearest is None or nearest in keys:
            return nearest
        return f"{nearest}.name" if f"{nearest}.name" in keys else None  # a group of keys has no value of its own

    @classmethod
    def leaves(cls) -> dict[str, FieldInfo]:
        """Every dotted key with its field."""
        return dict(_leaves(cls.of_values({})))

    @classmethod
    def keys(cls) -> dict[str, bool]:
        """All keys, dotted; True for those that take a path."""
        return {key: _takes_path(field) for key, field in cls.leaves().items()}

    @classmethod
    def suggestions(cls, key: str) -> list[str]:
        """The values of a dotted key that have names."""
        group, dot, rest = key.partition(".")
        field = cls.model_fields.get(group)
        if field is None:
            return []
        if not dot:
            return cls.names(key)
        inner = next((part for part in _parts(field.annotation) if issubclass(part, Settings)), None)
        return [] if inner is None else inner.suggestions(rest)

    @classmethod
    def names(cls, key: str) -> list[str]:
        """The values of one of its own keys that have names; those of its type, unless a subclass knows more."""
        return _literals(cls.model_fields[key].annotation)

    @classmethod
    def help(cls) -> str:
        """The keys with their meanings and defaults, for --help; long keys get a line of their own."""
        fields = cls.leaves()
        width = max((len(key) for key in fields if len(key) <= _MAX_KEY_COLUMN), default=0)
        lines = []
        for key, field in fields.items():
            if len(key) > width:
                lines.append(f"  {key}")
                key = ""
            lines.append(f"  {key:<{width}}  {_meaning(field)}".rstrip())
        return "\n".join(lines)


def _meaning(field: FieldInfo) -> str:
    """The description of a field and its default, unless that is None, which descriptions explain."""
    if field.is_required():
        return f"{field.description or ''} (required)"
    default = field.get_default(call_default_factory=True)
    return f"{field.description or ''}" + ("" if default is None else f" (default: {default})")


def split_key(dotted: str) -> list[str]:
    """The parts of a dotted key."""
    parts = dotted.split(".")
    if len(parts) > MAX_DEPTH:
        raise ConfigError(f"key {shown(dotted)}: more than {MAX_DEPTH} nested levels")
    return parts


def _override(cls: type[Settings], values: dict[str, Any], override: str) -> None:
    """Set one `dotted.key=value` in the nested `values`."""
    dotted, equals, text = override.partition("=")
    if not equals or not dotted:
        raise ConfigError(f"{shown(override)} is not of the form key=value")
    *parents, last = split_key(f"{dotted}.name" if dotted in cls.NAMED else dotted)
    for depth, key in enumerate(parents):
        if isinstance(values.get(key), str) and ".".join(parents[: depth + 1]) in cls.NAMED:
            values[key] = {"name": values[key]}
        values = values.setdefault(key, {})
        if not isinstance(values, dict):
            raise ConfigError(f"{clip(dotted)}: {clip('.'.join(parents[: depth + 1]))} is a value, not a group of keys")
    takes_text = _is_text(_leaf(cls, dotted))
    try:
        parsed = parse_yaml(text)
    except YamlError as error:
        if isinstance(error, YamlLimitError) and not takes_text:
            raise ConfigError(f"{clip(dotted)}: {error}") from None
        parsed = text
    # A string field takes the text as typed: run=007 is not the number 7.
    values[last] = text if takes_text and parsed is not None else parsed


def _is_text(field: FieldInfo | None) -> bool:
    if field is None:
        return False
    choices = set(get_args(field.annotation) or (field.annotation,)) - {NoneType}
    return choices <= {str, Path, PathText}


def _leaves(cls: type[BaseModel], prefix: str = "", group: BaseModel | None = None) -> Iterator[tuple[str, FieldInfo]]:
    """The keys with their fields; `group` holds the defaults of a group where they are not those of its class."""
    for name, field in cls.model_fields.items():
        default = field.default if group is None else getattr(group, name)
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            same = type(default) is field.annotation
            yield from _leaves(field.annotation, f"{prefix}{name}.", default if same else None)
        elif group is None:
            yield prefix + name, field
        else:
            yield prefix + name, FieldInfo.merge_field_infos(field, default=default)


def _parts(annotation: Any) -> Iterator[type]:
    """The classes in an annotation."""
    if isinstance(annotation, type):
        yield annotation
    for inner in get_args(annotation):
        yield from _parts(inner)


def _literals(annotation: Any) -> list[str]:
    if get_origin(annotation) is Literal:
        return [str(value) for value in get_args(annotation)]
    if annotation is bool:
        return ["true", "false"]
    return [name for inner in get_args(annotation) for name in _literals(inner)]


def _takes_path(field: FieldInfo) -> bool:
    return PathText in (field.annotation, *get_args(field.annotation)) or _PATH in field.metadata


def _leaf(cls: type[BaseModel], dotted: str) -> FieldInfo | None:
    return dict(_leaves(cls)).get(dotted)


def _explain(cls: type[Settings], error: ValidationError) -> str:
    """The problems in one line: each key, what is wrong, and a suggestion if the key is unknown."""
    problems = [_problem(cls, detail) for detail in error.errors(include_url=False)[:MAX_LISTED]]
    more = [f"and {error.error_count() - MAX_LISTED:,} more"] if error.error_count() > MAX_LISTED else []
    return "; ".join([*problems, *more])


def _problem(cls: type[Settings], detail: ErrorDetails) -> str:
    key, value = ".".join(str(part) for part in detail["loc"]), detail["input"]
    if detail["type"] == "extra_forbidden":
        while isinstance(value, Mapping) and len(value) == 1:  # an unknown group, as in lerner.lr=1
            ((last, value),) = value.items()
            key = f"{key}.{last}"
        return cls.explain_unknown(key) or _unknown_key(cls, key)
    if detail["type"] == "model_type":
        keys = _siblings(cls, f"{key}.")
        name = isinstance(value, str) and f"{key}.name" in keys
        advice = f"; did you mean {key}.name={clip(value)}?" if name else f": {', '.join(keys)}"
        return f"{clip(key)} is a group of keys{advice}"
    message = detail["msg"].removeprefix("Value error, ") or "not allowed"  # a plugin's ValueError() says nothing
    message = message[0].lower() + message[1:]
    # A rule between keys names them itself; printing the whole group would hide the message.
    rule = detail["type"] == "value_error" and (isinstance(value, Mapping) or shown(value) in message)
    prefix, got = f"{clip(key)}: " if key else "", "" if rule or not key else f" (got {shown(value)})"
    return f"{prefix}{message}{got}"


def _nearest_key(cls: type[BaseModel], key: str) -> str | None:
    """The key most like `key`: by the spelling of its last component, by its words, or by those of its description."""
    group, _, last = key.rpartition(".")
    # Where several fit, one in the same group comes first.
    leaves = sorted(_leaves(cls), key=lambda leaf: leaf[0].rpartition(".")[0] != group)
    keys = [name for name, _ in leaves]
    keys += sorted({name[:end] for name in keys for end, letter in enumerate(name) if letter == "."})  # groups
    by_last = {name.rpartition(".")[2]: name for name in reversed(keys)}
    nearest = nearest_name(last, by_last, cutoff=0.7)
    if nearest is not None:
        return by_last[nearest]
    words = _words(last)
    if not words:
        return None
    in_key = [name for name in keys if words <= _words(name.rpartition(".")[2])]
    in_description = [name for name, field in leaves if words <= _words(field.description or "")]
    return next(iter([*in_key, *in_description]), None)


def _words(text: str) -> set[str]:
    return set(re.findall("[a-z]{2,}", text.lower()))


def _unknown_key(cls: type[Settings], key: str) -> str:
    """The keys of its group are listed without the group's name, which would only repeat."""
    known = _siblings(cls, key)
    group = key[: key.rfind(".") + 1]
    inside = [name.removeprefix(group) for name in known if name.startswith(group)]
    where = f" in {clip(group[:-1])}" if group and inside else ""
    return unknown_message("key", key, _nearest_key(cls, key), inside if where else known, where)


def _siblings(cls: type[BaseModel], key: str) -> list[str]:
    """The keys of the group that `key` is in, or of the top level if there is no such group."""
    group = key[: key.rfind(".") + 1]
    leaves = [name for name, _ in _leaves(cls)]
    inside = [name.removeprefix(group).partition(".") for name in leaves if name.startswith(group)]
    if not inside:
        return _siblings(cls, "")
    return sorted({f"{group}{name}{dot and '.*'}" for name, dot, _ in inside})
