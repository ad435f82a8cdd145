"""Refresh study.md and graphs.md from the results in the folders beside them: reports, and the blocks between marks.

A mark such as `<!-- study claims -->` names a folder with results and a block, or a table in it; what stands up to
`<!-- end -->` is replaced.
"""

import csv
import re
from pathlib import Path

from qrl.agents.studies.findings import Cell, Findings
from qrl.agents.studies.folder import StudyFolder
from qrl.agents.studies.report import (
    claims_table,
    comparisons_table,
    overview_table,
    place_table,
    progress,
    table,
    write_report,
)
from qrl.agents.studies.table import matched, read_rows
from qrl.common.files import atomic_write

DOCS = Path(__file__).parent
MARK = re.compile(r"<!-- (?P<folder>[\w/-]+) (?P<block>[\w. -]+) -->\n(?:(?!<!--).)*<!-- end -->", re.DOTALL)


class Results:
    """A folder with the results of a study; its report is written anew."""

    def __init__(self, name: str) -> None:
        folder = StudyFolder(DOCS / name)
        study = folder.read_study()
        self.findings = Findings(study, matched(study, read_rows(folder.results)))
        self.cells: list[Cell] = self.findings.cells()
        write_report(self.findings, folder.path)

    def block(self, name: str) -> str:
        """`name`: what stands in a mark after the folder."""
        for place in self.findings.places:
            if name == " ".join(("table", *filter(None, (place[0], f"{place[1]:g}")))):
                return place_table(self.findings, place, self.cells)
        if name == "overview":
            return overview_table(self.findings, self.cells)
        return {"progress": progress, "claims": claims_table, "improvement": comparisons_table}[name](self.findings)


def main() -> None:
    known: dict[str, Results] = {}

    def refreshed(mark: re.Match[str]) -> str:
        folder, block = mark["folder"], mark["block"]
        if block.endswith(".csv"):
            with (DOCS / folder / block).open() as file:
                titles, *rows = csv.reader(file)
            text = table(titles, rows)
        else:
            results = known[folder] = known.get(folder) or Results(folder)
            text = results.block(block)
        return f"<!-- {folder} {block} -->\n\n{text}\n\n<!-- end -->"

    for page in (DOCS / "study.md", DOCS / "graphs.md"):
        text = page.read_text()
        assert len(MARK.findall(text)) == text.count("<!-- end -->"), f"{page}: a mark is misspelt or not closed"
        text = MARK.sub(refreshed, text)
        with atomic_write(page) as file:
            file.write(text.encode())


main()
