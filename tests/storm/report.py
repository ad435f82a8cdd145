"""What became of every case, counted per kind as a Markdown table."""

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    SURVIVED = "survived"
    LOST = "lost"
    WRONG = "silently wrong"
    TRACEBACK = "tracebacks"
    SLOW = "over 10 s"
    BIG = "over 1 GB"
    LONG = "long errors"
    SKIPPED = "not permitted"


FAILURES = (Verdict.LOST, Verdict.WRONG, Verdict.TRACEBACK, Verdict.SLOW, Verdict.BIG, Verdict.LONG)


@dataclass(frozen=True)
class Outcome:
    """One case of the storm: `case` is what `--only` takes, `kind` its row in the table."""

    case: str
    kind: str
    verdict: Verdict
    detail: str = ""
    tried: int = 1  # kills in the case: none, if the command was faster

    @property
    def failed(self) -> bool:
        return self.verdict in FAILURES


class Tally:
    """The outcomes of one part of the storm."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.kinds: list[str] = []
        self.outcomes: list[Outcome] = []

    def add(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)
        if outcome.kind not in self.kinds:
            self.kinds.append(outcome.kind)

    @property
    def failures(self) -> list[Outcome]:
        return [outcome for outcome in self.outcomes if outcome.failed]

    def markdown(self) -> str:
        skipped = any(outcome.verdict == Verdict.SKIPPED for outcome in self.outcomes)
        columns = [Verdict.SURVIVED, *FAILURES, *([Verdict.SKIPPED] if skipped else [])]
        lines = [f"| {self.title} | tried | {' | '.join(columns)} |", "| --- |" + " ---: |" * (len(columns) + 1)]
        for kind in self.kinds:
            rows = [outcome for outcome in self.outcomes if outcome.kind == kind]
            if rows:
                lines.append(_line(kind, rows, columns))
        return "\n".join([*lines, _line("**all**", self.outcomes, columns)])

    def details(self) -> str:
        """How those that survived did so, if the cases say it."""
        survived = Counter(row.detail for row in self.outcomes if row.verdict == Verdict.SURVIVED and row.detail)
        return ", ".join(f"{count:,} {detail}" for detail, count in survived.most_common())


def _line(kind: str, rows: list[Outcome], columns: list[Verdict]) -> str:
    counts: Counter[Verdict] = Counter()
    for row in rows:
        counts[row.verdict] += max(row.tried, row.failed)
    cells = [counts.total() - counts[Verdict.SKIPPED], *(counts[column] for column in columns)]
    return f"| {kind} | " + " | ".join(f"{cell:,}" for cell in cells) + " |"
