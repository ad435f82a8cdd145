"""What the commands share: arguments with settings, plugins, and user mistakes reported without a traceback.

Imports nothing heavy, so that even a Ctrl-C in the first moments reaches `command`.
"""

import argparse
import functools
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

import qrl
from qrl.common.completion import complete, completed_by, completing, files, overrides, typed_words
from qrl.common.errors import UserError
from qrl.common.text import MAX_SHOWN, clip

if TYPE_CHECKING:
    from qrl.common.settings import Settings

Main = Callable[[Sequence[str] | None], int | None]


def command(main: Main) -> Callable[[Sequence[str] | None], int]:
    """Give `main(argv)` an exit status.

    Its own or 0, 2 for a user's mistake, 130 when interrupted, 141 when nobody reads the output any more.
    """

    @functools.wraps(main)
    def run(argv: Sequence[str] | None = None) -> int:
        try:
            with _remembering_interrupts():
                return main(typed_words() if argv is None and completing() else argv) or 0
        except UserError as error:
            print(f"error: {error}", file=sys.stderr)
            return 2
        except KeyboardInterrupt:
            return _interrupted()
        except BrokenPipeError:  # a reader such as `head` has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing more to flush at the end
            return 141
        except Exception as error:
            # Compiled code turns an interrupt into an error of its own: pydantic's names it, NumPy's imports do not.
            if _interrupts or "KeyboardInterrupt" in str(error):
                return _interrupted()
            raise

    return run


_interrupts: list[int] = []


def check_interrupted() -> None:
    """Raise a KeyboardInterrupt again that compiled code, such as pydantic's, has swallowed."""
    if _interrupts:
        raise KeyboardInterrupt


@contextmanager
def _remembering_interrupts() -> Iterator[None]:
    def remember(number: int, _: FrameType | None) -> None:
        _interrupts.append(number)
        raise KeyboardInterrupt

    _interrupts.clear()
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler or not _in_main_thread():
        yield  # somebody else handles interrupts
        return
    signal.signal(signal.SIGINT, remember)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _interrupted() -> int:
    print("interrupted", file=sys.stderr)
    return 130


class Parser(argparse.ArgumentParser):
    """Suggests key=value to users who write a setting as an option."""

    settings: "type[Settings] | None" = None
    arguments: Sequence[str] = ()

    def parse_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> argparse.Namespace:
        if completing():
            complete(self)
        return super().parse_args(args, namespace)

    def parse_intermixed_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> argparse.Namespace:
        if completing():
            complete(self)
        self.arguments = sys.argv[1:] if args is None else args
        return super().parse_intermixed_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        _, _, unknown = message.partition("unrecognized arguments: ")
        option = unknown.partition(" ")[0]
        if self.settings is not None and option.startswith("--"):
            name, _, value = option.removeprefix("--").partition("=")
            key = self.settings.nearest_key(name.replace("-", "_"))
            suggestion = f"did you mean {key}={value or self._argument_after(option)}?" if key else "--help lists them"
            message += f" (settings are given as key=value; {suggestion})"
        super().error(re.sub(rf"\S{{{MAX_SHOWN},}}", lambda word: clip(word[0]), message))

    def _argument_after(self, option: str) -> str:
        """What the user typed after an option; argparse takes it for an override."""
        following = self.arguments[list(self.arguments).index(option) + 1 :][:1]
        return next((text for text in following if not text.startswith("-") and "=" not in text), "VALUE")


def new_parser(prog: str, description: str | None) -> Parser:
    parser = Parser(prog=prog, description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", action="version", version=f"%(prog)s (quasimetric {qrl.__version__})")
    return parser


def add_settings_arguments(parser: Parser, settings: "type[Settings]", argv: Sequence[str] | None = None) -> None:
    """Add --config and key=value overrides; --help lists the keys that those in `argv` choose."""
    add = parser.add_argument
    config = add("--config", metavar="FILE", help="YAML file of settings, or the name of a built-in config")
    complete_config(config, settings)
    add_override_arguments(parser, _chosen_settings(settings, sys.argv[1:] if argv is None else argv))


def complete_config(action: argparse.Action, settings: "type[Settings]") -> None:
    """Let an argument be completed by the names of the built-in configs for the settings, and by YAML files."""

    def names(_: str) -> list[str]:
        from qrl.common.config_files import builtin_configs

        return builtin_configs(settings.CONFIGS)

    completed_by(action, names, files(".yaml", ".yml"))


def _chosen_settings(settings: "type[Settings]", argv: Sequence[str]) -> "type[Settings]":
    """The settings that --config and the overrides choose, where a value decides which keys there are."""
    early = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    early.add_argument("--config")
    try:
        config, others = early.parse_known_args(list(argv))
        overrides = [text for text in others if "=" in text and not text.startswith("-")]
        return settings.of_values(settings.read(config.config, overrides))
    except (argparse.ArgumentError, UserError):  # reported when the arguments are used
        return settings


def add_override_arguments(parser: Parser, settings: "type[Settings]") -> None:
    """Add key=value overrides, with every key listed by --help.

    Parse with `parse_intermixed_args`, so that options may stand between overrides.
    """
    parser.settings = settings
    override = parser.add_argument("overrides", nargs="*", metavar="key=value", help="settings, see the keys below")
    completed_by(override, lambda prefix: overrides(settings)(prefix))
    parser.epilog = f"keys:\n{settings.help()}"


def add_plugin_argument(parser: Parser, argv: Sequence[str] | None) -> None:
    """Add --plugin, and import the named modules at once, so that --help knows what they register."""
    parser.add_argument("--plugin", action="append", default=[], metavar="MODULE", help="import this module first")
    early = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    early.add_argument("--plugin", action="append", default=[])
    try:
        modules = early.parse_known_args(argv)[0].plugin
    except argparse.ArgumentError:  # --plugin without a module: the real parser says so
        return
    if modules and not completing():
        from qrl.common.plugins import load_plugin

        for module in modules:
            load_plugin(module)
