"""The commands: `python -m qrl` lists them, and `python -m qrl COMMAND ...` runs one."""

import importlib
import pkgutil
import sys
from collections.abc import Sequence

import qrl.scripts
from qrl.common.commands import command, new_parser
from qrl.common.errors import ConfigError
from qrl.common.names import unknown_name


def commands() -> dict[str, str]:
    """The module of each command, by the command's name."""
    modules = (module.name for module in pkgutil.iter_modules(qrl.scripts.__path__))
    return {name.replace("_", "-"): f"qrl.scripts.{name}" for name in modules if not name.startswith("_")}


def _listing() -> str:
    known = commands()
    width = max(map(len, known))
    meanings = {name: (importlib.import_module(module).__doc__ or "").split("\n")[0] for name, module in known.items()}
    return "\n".join(f"  {name:<{width}}  {meaning}" for name, meaning in meanings.items())


@command
def main(argv: Sequence[str] | None = None) -> int:
    arguments = sys.argv[1:] if argv is None else list(argv)
    if arguments and not arguments[0].startswith("-"):
        name, *rest = arguments
        if name not in commands():
            raise ConfigError(unknown_name("command", name, commands()))
        status: int = importlib.import_module(commands()[name]).main(rest)
        return status
    parser = new_parser("python -m qrl", qrl.__doc__)
    parser.add_argument("--completion", action="store_true", help="print shell code that completes the commands")
    parser.usage = "python -m qrl [COMMAND ...]"
    parser.epilog = f"commands, each with a --help of its own:\n{_listing()}"
    if parser.parse_args(arguments).completion:
        from argcomplete.shell_integration import shellcode

        print(shellcode(list(commands())))
    else:
        parser.print_help()
    return 0


if __name__ == "__main__":
    sys.exit(main(None))
