"""Executes the tutorials and writes them back with their outputs.

python docs/tutorials/run.py [NAME ...]: all of them, or those named, such as first-agent.

What differs from one execution to the next is left out, so that a diff shows only what a reader would see change:
times, versions, identifiers of cells, and everything in a picture but its pixels.
"""

import base64
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from nbclient import NotebookClient
from PIL import Image

from qrl.common.files import atomic_write

FOLDER = Path(__file__).parent
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
COLORS = 64  # of a picture, which keeps it small


def tutorials() -> list[Path]:
    return sorted(FOLDER.glob("*.ipynb"))


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=4)


def execute(notebook: Any) -> None:
    """Run a notebook from top to bottom in a kernel and an empty folder of its own."""
    with _quiet_environment() as folder:
        resources = {"metadata": {"path": folder}}
        NotebookClient(
            notebook,
            kernel_name="python3",
            timeout=900,
            startup_timeout=300,
            extra_arguments=["--log-level=ERROR"],
            record_timing=False,
            coalesce_streams=True,
            resources=resources,
        ).execute()


@contextmanager
def _quiet_environment() -> Iterator[str]:
    """A folder to work in; the kernel takes one thread, and leaves nothing in the user's home."""
    with TemporaryDirectory() as folder:
        commands = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
        changes = {"OMP_NUM_THREADS": "1", "IPYTHONDIR": f"{folder}/.ipython", "PATH": commands}
        before = {key: os.environ.get(key) for key in changes}
        os.environ |= changes
        try:
            yield folder
        finally:
            for key, value in before.items():
                os.environ.pop(key) if value is None else os.environ.update({key: value})


def normalize(notebook: Any, name: str) -> None:
    """Leave out what differs from one execution to the next."""
    notebook.metadata = nbformat.from_dict(METADATA)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    for number, cell in enumerate(notebook.cells):
        cell.id = f"{name}-{number}"
        cell.metadata = nbformat.from_dict({key: value for key, value in cell.metadata.items() if key == "tags"})
        if cell.cell_type == "code":
            cell.outputs = [_normal_output(output, cell.source) for output in cell.outputs]


def _normal_output(output: Any, source: str) -> Any:
    if output.output_type == "error" or output.get("name") == "stderr":
        raise ValueError(f"a cell prints an error or a warning:\n{source}\n{output}")
    if "text" in output:
        output.text = output.text.replace("\r\n", "\n")  # of commands
    if "data" in output:
        output.metadata = nbformat.from_dict({})
        shown = {kind: text for kind, text in output.data.items() if kind in ("text/plain", "image/png")}
        if "image/png" in shown:
            shown["image/png"] = _plain_png(shown["image/png"])
        output.data = nbformat.from_dict(shown)
    return output


def _plain_png(text: str) -> str:
    """The pixels alone, in few colors."""
    image: Image.Image = Image.open(io.BytesIO(base64.b64decode(text)))
    if image.mode == "P":  # it is so already
        return text
    file = io.BytesIO()
    image.convert("RGB").quantize(COLORS).save(file, "png", optimize=True)
    return base64.b64encode(file.getvalue()).decode()


def write(notebook: Any, path: Path) -> None:
    with atomic_write(path) as file:
        file.write(f"{nbformat.writes(notebook, indent=1)}\n".encode())


def main(names: list[str]) -> None:
    for path in [FOLDER / f"{name}.ipynb" for name in names] or tutorials():
        notebook = read(path)
        execute(notebook)
        normalize(notebook, path.stem)
        write(notebook, path)
        print(f"executed {path.name}")


if __name__ == "__main__":
    main(sys.argv[1:])
