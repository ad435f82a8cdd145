"""Refresh the tables of study.md, between its marks, and the picture, from the results in study/."""

from pathlib import Path

from agents.studies.findings import Findings
from agents.studies.folder import StudyFolder
from agents.studies.report import claims_table, comparisons_table, place_table, progress, write_report
from agents.studies.table import matched, read_rows
from qrl.common.files import atomic_write

PAGE = Path(__file__).parent / "study.md"


def main() -> None:
    folder = StudyFolder(PAGE.with_suffix(""))
    study = folder.read_study()
    findings = Findings(study, matched(study, read_rows(folder.results)))
    write_report(findings, folder.path)
    cells = findings.cells()
    blocks = {
        "progress": progress(findings),
        "claims": claims_table(findings),
        "improvement": comparisons_table(findings),
    }
    for place in findings.places:
        blocks[f"size {place[1]}"] = place_table(findings, place, cells)
    text = PAGE.read_text()
    for name, block in blocks.items():
        begin, end = f"<!-- {name} -->\n", "<!-- end -->"
        before, found, rest = text.partition(begin)
        assert found, f"{PAGE}: the mark {begin!r} is missing"
        text = f"{before}{begin}\n{block}\n\n{end}{rest.partition(end)[2]}"
    with atomic_write(PAGE) as file:
        file.write(text.encode())


main()
