"""Refresh the pages on studies from the results in the folders beside them: reports and marked blocks.

A mark such as `<!-- study claims -->` names a folder with results and a block, or a table in it; everything up to
`<!-- end -->` is replaced.
"""

import csv
import re
from pathlib import Path

from qrl.agents.studies.curves import read_curves
from qrl.agents.studies.findings import Findings, GroupSummary
from qrl.agents.studies.folder import StudyFolder
from qrl.agents.studies.report import (
    claims_table,
    comparisons_table,
    condition_table,
    overview_table,
    progress,
    table,
    write_report,
)
from qrl.agents.studies.table import matched, read_rows
from qrl.common.files import atomic_write

DOCS = Path(__file__).parent
MARK = re.compile(r"<!-- (?P<folder>[\w/-]+) (?P<block>[\w. -]+) -->\n(?:(?!<!--).)*<!-- end -->", re.DOTALL)


class Results:
    """A folder with the results of a study; its report is written again, with learning curves if the page has them."""

    def __init__(self, name: str, page: str) -> None:
        folder = StudyFolder(DOCS / name)
        study = folder.read_study()
        self.findings = Findings(study, matched(study, read_rows(folder.results)))
        self.groups: list[GroupSummary] = self.findings.summaries()
        write_report(
            self.findings, folder.path, read_curves(folder.curves) if f"{name}/learning-curves" in page else []
        )

    def block(self, name: str) -> str:
        """`name`: the part of a mark after the folder."""
        for condition in self.findings.conditions:
            world, value = condition
            if name == " ".join(("table", *filter(None, (world, f"{value:g}")))):
                return condition_table(self.findings, condition, self.groups)
        if name == "overview":
            return overview_table(self.findings, self.groups)
        return {"progress": progress, "claims": claims_table, "improvement": comparisons_table}[name](self.findings)


def main() -> None:
    known: dict[str, Results] = {}

    def refreshed(mark: re.Match[str]) -> str:
        folder, block, page = mark["folder"], mark["block"], mark.string
        if block.endswith(".csv"):
            with (DOCS / folder / block).open() as file:
                titles, *rows = csv.reader(file)
            text = table(titles, rows)
        else:
            results = known[folder] = known.get(folder) or Results(folder, page)
            text = results.block(block)
        return f"<!-- {folder} {block} -->\n\n{text}\n\n<!-- end -->"

    for page in (DOCS / f"{name}.md" for name in ("study", "graphs", "objectives", "training", "worlds")):
        text = page.read_text()
        assert len(MARK.findall(text)) == text.count("<!-- end -->"), f"{page}: a mark is misspelled or not closed"
        text = MARK.sub(refreshed, text)
        with atomic_write(page) as file:
            file.write(text.encode())


if __name__ == "__main__":
    main()
