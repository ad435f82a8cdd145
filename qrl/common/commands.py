"""What the commands share: arguments with settings, and a user's mistakes told without a traceback."""

import argparse
import functools
import os
import sys
from collections.abc import Callable, Sequence

from qrl.common.errors import UserError
from qrl.common.settings import Settings

Main = Callable[[Sequence[str] | None], int | None]


def command(main: Main) -> Callable[[Sequence[str] | None], int]:
    """Give `main(argv)` an exit status.

    Its own or 0, 2 for a user's mistake, 130 when interrupted, 141 when nobody reads the output any more.
    """

    @functools.wraps(main)
    def run(argv: Sequence[str] | None = None) -> int:
        try:
            return main(argv) or 0
        except UserError as error:
            print(f"error: {error}", file=sys.stderr)
            return 2
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            return 130
        except BrokenPipeError:  # what reads the output, as `head` does, has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing more to flush at the end
            return 141

    return run


def new_parser(prog: str, description: str | None) -> argparse.ArgumentParser:
    return argparse.ArgumentParser(
        prog=prog, description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def add_settings_arguments(parser: argparse.ArgumentParser, settings: type[Settings]) -> None:
    """Add --config and key=value overrides."""
    parser.add_argument("--config", metavar="FILE", help="YAML file of settings, or the name of a built-in one")
    add_override_arguments(parser, settings)


def add_override_arguments(parser: argparse.ArgumentParser, settings: type[Settings]) -> None:
    """Add key=value overrides, with every key listed by --help.

    Parse with `parse_intermixed_args`, so that options may stand between overrides.
    """
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="settings, see the keys below")
    parser.epilog = f"keys:\n{settings.help()}"
