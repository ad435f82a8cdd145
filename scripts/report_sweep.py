"""Draw the results of a sweep: success by dataset size, learning curves, tables and which claims hold.

Works while the sweep is still running, and on a folder with nothing but study.yaml and results.csv.
"""

from collections.abc import Sequence
from pathlib import Path

from qrl.common.commands import add_plugin_argument, command, new_parser


@command
def main(argv: Sequence[str] | None = None) -> None:
    parser = new_parser("report-sweep", __doc__)
    parser.add_argument("folder", metavar="DIR", help="results of sweep-agents")
    parser.add_argument("--out", metavar="DIR", help="folder to write the report to (default: the same folder)")
    add_plugin_argument(parser, argv)
    args = parser.parse_args(argv)

    # Imported only now, so that --help answers without torch.
    from qrl.agents.errors import RunError
    from qrl.agents.studies.curves import read_curves, write_curves
    from qrl.agents.studies.findings import Findings
    from qrl.agents.studies.folder import StudyFolder
    from qrl.agents.studies.report import markdown, write_report
    from qrl.agents.studies.table import check_columns, check_kept, gather, matched, read_rows, write_rows

    folder = StudyFolder(args.folder)
    study = folder.read_study()
    saved = read_rows(folder.results) if folder.results.is_file() else []
    if folder.has_runs:
        rows = gather(folder, study)
        advice = "put them back into runs/, or remove the whole of it to report from the table alone"
        check_kept(saved, rows, folder, advice)
        check_columns(study, folder.results)
        write_rows(rows, study.settings.kind.metrics, folder.results)
        write_curves(study, folder)
    elif saved:
        rows = matched(study, saved)
    else:
        raise RunError(f"{folder.path} has neither runs nor results.csv; compute them with sweep-agents")
    findings = Findings(study, rows)
    print(markdown(findings, findings.summaries()))
    curves = read_curves(folder.curves) if folder.curves.is_file() else []
    for path in write_report(findings, Path(args.out or folder.path), curves):
        print(f"wrote {path}")
