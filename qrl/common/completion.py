"""Shell completion of the commands, through argcomplete. Nothing here imports torch, or a plugin: a key press must not.

A shell that completes a command line runs the command with the line in COMP_LINE, and reads what it offers.
"""

import argparse
import os
import shlex
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from qrl.common.settings import Settings

Completer = Callable[[str], Iterable[str]]  # what may stand for a word that begins like this


def completing() -> bool:
    """Whether a shell asks for completions."""
    return "_ARGCOMPLETE" in os.environ


def typed_words() -> list[str]:
    """The arguments before the word that is being completed."""
    line = os.environ["COMP_LINE"][: int(os.environ["COMP_POINT"])]
    try:
        words = shlex.split(line)
    except ValueError:  # within quotes
        return []
    return words[int(os.environ["_ARGCOMPLETE"]) : None if line[-1:].isspace() else -1]


def complete(parser: argparse.ArgumentParser) -> None:
    """Print the completions, and exit; options are offered after a dash."""
    import argcomplete

    _leave_out_options(parser)
    argcomplete.autocomplete(parser, always_complete_options=False)


def _leave_out_options(parser: argparse.ArgumentParser) -> None:
    """Take the options before an argument out of the line: for argparse, they end a list of arguments."""
    line = os.environ["COMP_LINE"][: int(os.environ["COMP_POINT"])]
    current = "" if line[-1:].isspace() else line.split()[-1]
    arguments, takes_value = [], False
    for word in typed_words():
        action = parser._option_string_actions.get(word)
        if not takes_value and not word.startswith("-"):
            arguments.append(word)
        takes_value = action is not None and action.nargs is None
    if takes_value or current.startswith("-"):
        return
    line = f"{shlex.join([parser.prog, *arguments])} {current}"
    os.environ |= {"COMP_LINE": line, "COMP_POINT": str(len(line)), "_ARGCOMPLETE": "1"}


def completed_by(action: argparse.Action, *completers: Completer) -> None:
    """Let the completers offer the values of an argument."""
    action.completer = lambda prefix, **_: [  # type: ignore[attr-defined]
        word for completer in completers for word in completer(prefix) if word.startswith(prefix)
    ]


def paths(prefix: str, wanted: Callable[[Path], bool] = lambda path: True) -> Iterator[str]:
    """The files and folders that are wanted, and folders to look for them in."""
    folder, _, name = prefix.rpartition("/")
    base = Path(f"{folder}/" if folder or prefix.startswith("/") else ".")
    try:
        entries = sorted(base.expanduser().iterdir())
    except OSError:
        return
    for entry in entries:
        text = prefix[: len(prefix) - len(name)] + entry.name
        if not entry.name.startswith(name) or (entry.name.startswith(".") and not name):
            continue
        if wanted(entry):
            yield text
        elif entry.is_dir():
            yield f"{text}/"


def files(*suffixes: str) -> Completer:
    return lambda prefix: paths(prefix, lambda path: path.suffix in suffixes)


def overrides(settings: "type[Settings]") -> Completer:
    """Completes key=value: the keys, the names that a key takes, and paths."""
    fields = settings.keys()

    def complete_override(prefix: str) -> Iterator[str]:
        key, equals, value = prefix.partition("=")
        if not equals:
            yield from (f"{name}=" for name in fields)
            return
        before, comma, _ = value.rpartition(",")  # of several names
        names = settings.suggestions(key)
        yield from (f"{key}={before}{comma}{name}" for name in names)
        if not names and key in fields and fields[key]:
            yield from (f"{key}={path}" for path in paths(value))

    return complete_override
