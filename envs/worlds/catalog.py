"""The contents of the registry of worlds as text: a table of all, and the meaning and keys of one."""

from qrl.common.text import plain_table
from qrl.envs.worlds.registry import find_world, list_worlds


def table_of_worlds() -> str:
    registrations = [find_world(name) for name in list_worlds()]
    rows = [("name", "world", "origin")]
    for registration in registrations:
        title = (registration.meaning.splitlines() or [""])[0].rstrip(".")
        rows.append((registration.name, title, registration.origin))
    return f"{plain_table(rows)}\n\nlist-worlds NAME shows the keys of one"


def describe_world(name: str) -> str:
    registration = find_world(name)
    settings = registration.settings
    keys = "\n".join(f"  world.{line.strip()}" for line in settings.help().splitlines() if line.split()[0] != "name")
    return (
        f"{name} (from {registration.origin})\n{registration.meaning}\n\n"
        f"keys, for collect-dataset OUT.npz world={name}:\n{keys}"
    )
