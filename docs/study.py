"""Refresh the tables of study.md, between its marks, and the picture, from the results in study/."""

import re
from pathlib import Path

from agents.studies.findings import Findings
from agents.studies.folder import StudyFolder
from agents.studies.report import claims_table, comparisons_table, progress, size_table, write_report
from agents.studies.table import read_rows
from qrl.common.files import atomic_write

PAGE = Path(__file__).parent / "study.md"


def main() -> None:
    folder = StudyFolder(PAGE.with_suffix(""))
    findings = Findings(folder.read_study(), read_rows(folder.results))
    write_report(findings, folder.path)
    cells = findings.cells()
    blocks = {
        "progress": progress(findings),
        "claims": claims_table(findings.decisions()),
        "improvement": comparisons_table(findings),
    }
    for size in findings.sizes:
        blocks[f"size {size}"] = size_table([cell for cell in cells if cell.trajectories == size])
    text = PAGE.read_text()
    for name, block in blocks.items():
        pattern = rf"(<!-- {name} -->\n).*?(<!-- end -->)"
        text, found = re.subn(
            pattern, lambda match, block=block: f"{match[1]}\n{block}\n\n{match[2]}", text, flags=re.S
        )
        assert found == 1, f"{PAGE}: the block {name!r} stands {found} times"
    with atomic_write(PAGE) as file:
        file.write(text.encode())


main()
