"""The parsers of the commands, for the reference and for the check of commands in pages."""

from argparse import Namespace
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NoReturn
from unittest.mock import patch

from qrl.__main__ import commands
from qrl.common.commands import Parser


class _Reached(BaseException):
    """Raised where a command would parse its arguments."""

    def __init__(self, parse: Callable[[Sequence[str]], Namespace], parser: Parser) -> None:
        self.parse, self.parser = parse, parser


def parser_of(command: str, arguments: Sequence[str] = ()) -> tuple[Parser, Callable[[Sequence[str]], Namespace]]:
    """The parser of a command, with the keys that the arguments choose, and the method that it parses them with."""

    def stop(method: str) -> Callable[..., NoReturn]:
        def raise_reached(parser: Parser, *_: object) -> NoReturn:
            raise _Reached(methods[method].__get__(parser), parser)

        return raise_reached

    methods = {name: getattr(Parser, name) for name in ("parse_args", "parse_intermixed_args")}
    main = import_module(commands()[command]).main.__wrapped__
    stops: dict[str, Any] = {name: stop(name) for name in methods}
    with patch.multiple(Parser, **stops):
        try:
            main(list(arguments))
        except _Reached as reached:
            return reached.parser, reached.parse
    raise AssertionError(f"{command} parses nothing")
