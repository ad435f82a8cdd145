"""Kill runs and sweeps, fill disks and damage files, and count what survives: minutes, the same every time.

Exit status 1 if anything was lost, silently wrong, or ended with a traceback, a hang or too much memory.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

from qrl.common.files import atomic_write
from qrl.common.progress import Progress
from tests.storm.consoles import Consoles
from tests.storm.disk import Disks
from tests.storm.files import Files
from tests.storm.kills import Kills
from tests.storm.processes import default_signals, preload
from tests.storm.report import Outcome, Tally

BEGIN, END = "<!-- storm -->\n", "<!-- end of storm -->\n"
Part = Kills | Consoles | Disks | Files


def main() -> int:
    args = _arguments()
    default_signals()
    preload()
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # much faster for thousands of small files
    folder = Path(args.folder or tempfile.mkdtemp(prefix="storm-", dir=memory)).absolute()
    tallies, failures = [], 0
    for title, part_type, count in (
        ("kills of a training run", Kills, args.kills),
        ("kills of console commands", Consoles, args.console_kills),
        ("file systems", Disks, args.disks),
        ("damaged files", Files, args.files),
    ):
        if count:
            part = part_type(args.seed, count, folder / part_type.__name__.lower())
            tallies.append(_storm(part, title, args.only))
            failures += len(tallies[-1].failures)
    text = _page(args, [tally for tally in tallies if tally.outcomes])
    print(text)
    if args.out is not None:
        _write(Path(args.out), text)
    if failures:
        print(f"{failures} cases failed; their files are in {folder}", file=sys.stderr)
    return 1 if failures else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.storm", description=__doc__)
    add = parser.add_argument
    add("--seed", type=int, default=0, help="the same seed gives the same cases (default: 0)")
    add("--kills", type=int, default=500, metavar="N", help="kills of training runs (default: 500)")
    add("--console-kills", type=int, default=24, metavar="N", help="kills of console commands (default: 24)")
    add("--disks", type=int, default=40, metavar="N", help="full and read-only file systems (default: 40)")
    add("--files", type=int, default=10_000, metavar="N", help="damaged files (default: 10000)")
    add("--only", metavar="CASE", help="one case, as printed, such as kill:17; the other options must be the same")
    add("--out", metavar="FILE.md", help="write the tables into this page, between its marks")
    add("--folder", metavar="DIR", help="where to work and keep what fails (default: a new temporary folder)")
    return parser.parse_args()


def _storm(part: Part, title: str, only: str | None) -> Tally:
    tally = Tally(title)
    cases = [case for case in part if only in (None, case)]
    with Progress(len(cases), 0, title) as progress:
        for done, case in enumerate(cases, 1):
            outcome = part.run(case)
            tally.add(outcome)
            if outcome.failed or only is not None:
                _show(outcome)
            progress.update(done, {"failed": len(tally.failures)})
            progress.tick()
    part.close()
    return tally


def _show(outcome: Outcome) -> None:
    print(f"{outcome.case}: {outcome.verdict}: {outcome.kind}: {outcome.detail}", file=sys.stderr, flush=True)


def _page(args: argparse.Namespace, tallies: list[Tally]) -> str:
    options = f"--seed {args.seed} --kills {args.kills} --console-kills {args.console_kills}"
    command = f"python -m tests.storm {options} --disks {args.disks} --files {args.files}"
    parts = [f"Printed by `{command}`:"]
    for tally in tallies:
        details = tally.details()
        parts += [tally.markdown(), *([f"Of those that survived: {details}."] if details else [])]
    return "\n\n".join(parts) + "\n"


def _write(path: Path, text: str) -> None:
    """Replace what is between the marks of the page."""
    before, begin, rest = path.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    assert end, f"{path} has no marks for the tables"
    with atomic_write(path) as file:
        file.write(f"{before}{begin}\n{text}\n{end}{after}".encode())


if __name__ == "__main__":
    sys.exit(main())
