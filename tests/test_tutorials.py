"""The tutorials run from top to bottom, and were committed with the outputs that they have.

Where nothing is trained, a cell must print exactly what is committed. In cells tagged "trained" numbers are not
compared: torch rounds differently on other processors, and training amplifies that. Of pictures, only their number is.
"""

import copy
import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[1] / "docs" / "tutorials"
NAMES = ["first-agent", "own-data", "own-head", "own-learner", "own-world", "study"]

REASON = "not installed: pip install -c constraints.txt -e '.[notebooks]'"
nbclient = pytest.importorskip("nbclient", reason=f"nbclient is {REASON}")
pytest.importorskip("ipykernel", reason=f"ipykernel is {REASON}")

spec = importlib.util.spec_from_file_location("run_tutorials", FOLDER / "run.py")
assert spec is not None
assert spec.loader is not None
run: Any = importlib.util.module_from_spec(spec)
spec.loader.exec_module(run)


def shown(cell: Any) -> list[str]:
    """What a reader sees below a cell, as far as it is the same everywhere."""
    texts = [
        "<picture>" if "image/png" in output.get("data", {}) else output.get("text") or output["data"]["text/plain"]
        for output in cell.outputs
    ]
    if "trained" in cell.metadata.get("tags", []):
        texts = [re.sub(r"\d[\d.,]*", "#", " ".join(text.split())) for text in texts]
    return texts


def code_cells(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def test_these_are_all() -> None:
    assert [path.stem for path in run.tutorials()] == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_it_was_committed_executed_and_without_noise(name: str) -> None:
    path = FOLDER / f"{name}.ipynb"
    notebook = run.read(path)
    cells = code_cells(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert any("<picture>" in shown(cell) for cell in cells)
    normal = copy.deepcopy(notebook)
    run.normalize(normal, name)
    assert normal == notebook
    assert not re.search(r"/(home|root|tmp|work)\b", path.read_text())  # absolute paths
    assert path.stat().st_size < 300_000


@pytest.mark.parametrize("name", NAMES)
def test_it_runs_and_prints_what_is_committed(name: str) -> None:
    committed = run.read(FOLDER / f"{name}.ipynb")
    executed = copy.deepcopy(committed)
    for cell in code_cells(executed):
        cell.outputs, cell.execution_count = [], None
    run.execute(executed)
    run.normalize(executed, name)
    for cell, before in zip(code_cells(executed), code_cells(committed), strict=True):
        assert shown(cell) == shown(before), cell.source


def test_warnings_and_errors_are_not_written() -> None:
    notebook = run.nbformat.v4.new_notebook(
        cells=[run.nbformat.v4.new_code_cell("import sys; print('oh', file=sys.stderr)")]
    )
    run.execute(notebook)
    with pytest.raises(ValueError, match="prints an error or a warning"):
        run.normalize(notebook, "own")
