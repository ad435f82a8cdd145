"""Config files: YAML by path or built-in name, on top of the config that it includes."""

from collections.abc import Mapping
from importlib import resources
from typing import Any

import yaml

from qrl.common.errors import ConfigError
from qrl.common.files import check_path, is_file, read_text
from qrl.common.names import unknown_name
from qrl.common.text import shown
from qrl.common.yaml_text import MAX_BYTES, Dumper, YamlError, parse_yaml

# The commands of built-in configs, by their folders.
CONFIG_COMMANDS = {
    "data": "collect-dataset",
    "train": "train-agent",
    "graphs": "train-graph",
    "studies": "sweep-agents",
}


def read_config(config: str, folder: str = "") -> dict[str, Any]:
    """The mapping in a YAML file, given by path or as the name of a built-in config in `folder`.

    A file with `include: NAME` updates another config, named in the same way.
    """
    chain = [config]
    values = _read_yaml(config, folder)
    while (base := values.pop("include", None)) is not None:
        if not isinstance(base, str) or base in chain:
            raise ConfigError(f"{chain[-1]}: include must be the name of another config (got {shown(base)})")
        chain.append(base)
        values = merge(_read_yaml(base, folder), values)
    return values


def merge(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of `base` updated with `changes`, recursively."""
    merged = dict(base)
    for key, value in changes.items():
        old = merged.get(key)
        merged[key] = merge(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return merged


def _read_yaml(config: str, folder: str) -> dict[str, Any]:
    path = check_path(config, ConfigError)
    is_path = path.suffix in {".yaml", ".yml"} or is_file(path)
    text = read_text(path, MAX_BYTES) if is_path else _read_builtin(config, folder)
    try:
        values = parse_yaml(text)
    except YamlError as error:
        raise ConfigError(f"{config} is not valid YAML: {error}") from None
    if values is None:
        return {}
    if not isinstance(values, dict) or not all(isinstance(key, str) for key in values):
        raise ConfigError(f"{config}: expected 'key: value' lines at the top level")
    return values


def _read_builtin(config: str, folder: str) -> str:
    """The text of a built-in config, whose folder may be omitted."""
    root = resources.files("qrl.configs")
    name = config.removeprefix(f"{folder}/")
    file = root.joinpath(folder, f"{name}.yaml")
    if is_file(file):
        return file.read_text("utf-8")
    commands = [
        command
        for other, command in CONFIG_COMMANDS.items()
        if other != folder and is_file(root.joinpath(other, f"{config.removeprefix(f'{other}/')}.yaml"))
    ]
    if commands:
        raise ConfigError(f"config {shown(config)} is for {' and '.join(commands)}, not for this command")
    raise ConfigError(f"{unknown_name('config', name, builtin_configs(folder))}; or give the path of a YAML file")


def builtin_configs(folder: str) -> list[str]:
    """The names of the built-in configs in a folder."""
    root = resources.files("qrl.configs").joinpath(folder)
    entries = root.iterdir() if root.is_dir() else ()
    return [entry.name.removesuffix(".yaml") for entry in entries if entry.name.endswith(".yaml")]


def dump_yaml(values: Mapping[str, Any]) -> str:
    """YAML that `read_config` parses into the same values."""
    return yaml.dump(dict(values), Dumper=Dumper, sort_keys=False)
