"""Behavior shared by all commands."""

import os
import subprocess
import sys
from pathlib import Path


def test_a_closed_pipe_ends_a_command_quietly() -> None:
    """As in `list-models | head -1`: no traceback."""
    command = Path(sys.executable).with_name("list-models")
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed:
        run = subprocess.run([command], stdout=closed, stderr=subprocess.PIPE, text=True, check=False)
    assert (run.returncode, run.stderr) == (141, "")
