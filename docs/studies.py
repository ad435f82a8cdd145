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
    tuning_table,
    write_report,
)
from qrl.agents.studies.table import matched, read_rows
from qrl.common.files import atomic_write
from qrl.common.plugins import load_plugin

DOCS = Path(__file__).parent
PAGES = [DOCS.parent / "README.md"]
PAGES += [DOCS / f"{name}.md" for name in ("study", "graphs", "objectives", "training", "worlds")]
PLANNERS = {  # of README's table
    "iqe-maxmean": "quasimetric: `iqe-maxmean`",
    "mrn-fixed": "quasimetric: `mrn-fixed`",
    "metric-mixture": "symmetric metric: `metric-mixture`",
    "unconstrained": "unconstrained network",
    "dot": "dot product of two encoders",
    "random": "random walk",
    "empirical-graph": "memory: shortest paths over the transitions in the data",
}
MARK = re.compile(r"<!-- (?P<folder>[\w/-]+) (?P<block>[\w. -]+) -->\n(?:(?!<!--).)*<!-- end -->", re.DOTALL)


class Results:
    """A folder with the results of a study; its report is written again, with learning curves if `pages` show them."""

    def __init__(self, name: str, pages: str) -> None:
        folder = StudyFolder(DOCS / name)
        study = folder.read_study()
        self.findings = Findings(study, matched(study, read_rows(folder.results)))
        self.groups: list[GroupSummary] = self.findings.summaries()
        write_report(
            self.findings, folder.path, read_curves(folder.curves) if f"{name}/learning-curves" in pages else []
        )

    def block(self, name: str) -> str:
        """`name`: the part of a mark after the folder."""
        for condition in self.findings.conditions:
            world, value = condition
            if name == " ".join(("table", *filter(None, (world, f"{value:g}")))):
                return condition_table(self.findings, condition, self.groups)
        if name == "planners":
            return self._planners()
        if name.startswith("overview"):
            return overview_table(self.findings, self.groups, name.removeprefix("overview").strip() or None)
        blocks = {
            "progress": progress,
            "claims": claims_table,
            "improvement": comparisons_table,
            "tuning": tuning_table,
        }
        return blocks[name](self.findings)

    def _planners(self) -> str:
        """The means of `PLANNERS` under every condition."""
        metric, conditions = self.findings.kind.ranking, self.findings.conditions
        means = {
            (group.family, group.condition): f"{group.means[metric]:.3f}"
            for group in self.groups
            if group.selected or group.family in self.findings.references
        }
        rows = [[title, *(means[name, condition] for condition in conditions)] for name, title in PLANNERS.items()]
        return table(["planner", *(f"{world}, {value:,g}" for world, value in conditions)], rows)


def main() -> None:
    load_plugin("docs.training_variants")
    known: dict[str, Results] = {}
    texts = {page: page.read_text() for page in PAGES}

    def refreshed(mark: re.Match[str]) -> str:
        folder, block = mark["folder"], mark["block"]
        if block.endswith(".csv"):
            with (DOCS / folder / block).open() as file:
                titles, *rows = csv.reader(file)
            text = table(titles, rows)
        else:
            results = known[folder] = known.get(folder) or Results(folder, "".join(texts.values()))
            text = results.block(block)
        return f"<!-- {folder} {block} -->\n\n{text}\n\n<!-- end -->"

    for page, text in texts.items():
        assert len(MARK.findall(text)) == text.count("<!-- end -->"), f"{page}: a mark is misspelled or not closed"
        with atomic_write(page) as file:
            file.write(MARK.sub(refreshed, text).encode())


if __name__ == "__main__":
    main()
