"""Safe, bounded YAML: a few bytes can neither expand to gigabytes nor take minutes.

Anchors, aliases and merge keys are supported; their expansion counts against the bounds.
"""

import re
from typing import Any

import yaml

from qrl.common.text import clip, shown

MAX_BYTES = 2**17
MAX_NODES = 5_000  # keys, values and collections, with every alias expanded
MAX_DEPTH = 32
MAX_NUMBER = 400  # characters, enough for any 64-bit number
_INT = "tag:yaml.org,2002:int"
_FLOAT = "tag:yaml.org,2002:float"
_BOOL = "tag:yaml.org,2002:bool"


class YamlError(ValueError):
    """Text that is not YAML."""


class YamlLimitError(YamlError):
    """YAML that exceeds the bounds."""


class _LimitError(yaml.MarkedYAMLError):
    def __init__(self, problem: str, mark: Any) -> None:
        super().__init__(None, None, problem, mark)


class _Loader(yaml.SafeLoader):
    """Parses 3e-4 as a number, off and 1:30 as strings; refuses duplicate keys, self-references and excessive sizes."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._nodes = 0  # so far, with aliases expanded
        self._depth = 0
        self._extents: dict[yaml.Node, tuple[int, int]] = {}  # of finished nodes: their nodes and levels
        self._deepest = 0  # level reached within the current node

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Count while composing, so that excessive text is refused before it is expanded or even parsed."""
        event: yaml.Event = self.peek_event()  # type: ignore[no-untyped-call]
        mark = event.start_mark
        nodes_before, deepest_before = self._nodes, self._deepest
        self._deepest = self._depth = self._depth + 1
        self._grow(1, self._depth, mark)
        node = super().compose_node(parent, index)
        assert node is not None
        if not isinstance(event, yaml.AliasEvent):
            self._extents[node] = self._nodes - nodes_before, self._deepest - self._depth + 1
        elif node in self._extents:
            nodes, levels = self._extents[node]
            self._grow(nodes - 1, self._depth + levels - 1, mark)
        else:
            raise _LimitError("an alias refers to a collection that contains it", mark)
        self._deepest = max(self._deepest, deepest_before)
        self._depth -= 1
        return node

    def _grow(self, nodes: int, depth: int, mark: Any) -> None:
        self._nodes += nodes
        self._deepest = max(self._deepest, depth)
        for size, limit, unit in ((self._nodes, MAX_NODES, "values"), (self._deepest, MAX_DEPTH, "nested levels")):
            if size > limit:
                raise _LimitError(f"more than {limit:,} {unit}", mark)

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """Refuse duplicate keys as they are written: merging adds keys that others override."""
        node = super().compose_mapping_node(anchor)
        keys = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in keys:
                    problem = f"duplicate key {shown(key.value)}"
                    raise yaml.composer.ComposerError(None, None, problem, key.start_mark)
                keys.add(key.value)
        return node

    def compose_scalar_node(self, anchor: Any) -> yaml.ScalarNode:
        node = super().compose_scalar_node(anchor)
        if "\0" in node.value or any("\ud800" <= character <= "\udfff" for character in node.value):
            problem = "a NUL character or half a surrogate pair"
            raise yaml.composer.ComposerError(None, None, problem, node.start_mark)
        return node

    def construct_number(self, node: yaml.ScalarNode) -> int | float:
        if len(node.value) > MAX_NUMBER:
            raise _LimitError(f"a number of {len(node.value):,} characters", node.start_mark)
        number: int | float = self.construct_yaml_int(node) if node.tag == _INT else self.construct_yaml_float(node)
        if isinstance(number, int) and not -(2**63) <= number < 2**63:
            raise _LimitError("an integer of more than 64 bits", node.start_mark)
        return number


_Loader.add_constructor(_INT, _Loader.construct_number)
_Loader.add_constructor(_FLOAT, _Loader.construct_number)
# PyYAML follows YAML 1.1, in which on and off are booleans, 010 is 8, 1:30 is 90 and 3e-4 a string. Here a number with
# leading zeros is a string, too, of which pydantic makes a decimal number where a setting is one.
_Loader.yaml_implicit_resolvers = {
    letter: [(tag, pattern) for tag, pattern in resolvers if tag not in (_BOOL, _INT, _FLOAT)]
    for letter, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
for _tag, _pattern, _first in (
    (_BOOL, "true|True|false|False", "tTfF"),
    (_INT, "[-+]?(0|[1-9][0-9_]*|0x[0-9a-fA-F_]+)", "-+0123456789"),
    (_FLOAT, r"[-+]?([0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)([eE][-+]?[0-9]+)?", "-+.0123456789"),
    (_FLOAT, "[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+", "-+0123456789"),
    (_FLOAT, r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", "-+."),
):
    _Loader.add_implicit_resolver(_tag, re.compile(f"^({_pattern})$"), list(_first))

# What PyYAML raises for impossible dates, and for values that do not fit their explicit tags.
_VALUE_ERRORS = (ValueError, ArithmeticError, LookupError, AttributeError, TypeError)


def parse_yaml(text: str) -> Any:
    """The value of a YAML text; raises a YamlError with a short message."""
    if len(text) > MAX_BYTES:
        raise YamlLimitError(f"more than {MAX_BYTES:,} characters")
    try:
        return _Loader(text).get_single_data()
    except yaml.MarkedYAMLError as error:
        line = "" if error.problem_mark is None else f" (line {error.problem_mark.line + 1})"
        kind = YamlLimitError if isinstance(error, _LimitError) else YamlError
        raise kind(f"{clip(error.problem)}{line}") from None
    except yaml.YAMLError as error:
        raise YamlError(clip(error)) from None
    except _VALUE_ERRORS as error:
        raise YamlError(f"a value does not fit its type ({clip(error)})") from None


class Dumper(yaml.SafeDumper):
    """Quotes strings that `parse_yaml` would parse as another type."""

    yaml_implicit_resolvers = _Loader.yaml_implicit_resolvers
