"""The HTML page that compares agents."""

import html
import re
from pathlib import Path

from qrl.agents.evaluation.evaluator import Evaluator
from qrl.agents.evaluation.report import write_report
from qrl.agents.evaluation.tables import metric_rows
from qrl.agents.evaluation.trained_agent import TrainedAgent
from qrl.envs.dataset import Dataset
from qrl.envs.layout import Layout
from tests.agents.worlds import without_layout


def test_a_report_is_self_contained(trained: Path, tmp_path: Path) -> None:
    agent = TrainedAgent.open(trained)
    evaluator = Evaluator(agent.dataset)
    subject = evaluator.agent(agent.agent, "<b>iqe</b>")
    results = [evaluator.score(scored) for scored in [subject, *evaluator.references()]]
    write_report(tmp_path / "report.html", [agent], evaluator, [subject], results, ["<i>careful</i>"])
    page = (tmp_path / "report.html").read_text()
    sources = re.findall(r'src="([^"]{0,30})', page)
    assert len(sources) == 6
    assert "by exact distance" in page
    assert all(source.startswith("data:image/") for source in sources)
    targets = re.findall(r'href="([^"]*)"', page)
    assert all(target.startswith("#") for target in targets)
    assert all(f'id="{target[1:]}"' in page for target in targets)  # the contents lead somewhere
    assert "<b>iqe</b>" not in page  # names are escaped
    assert "&lt;b&gt;iqe&lt;/b&gt;" in page
    assert "<b>Note:</b> &lt;i&gt;careful&lt;/i&gt;." in page
    text = re.sub(r'src="[^"]*"', "", page)
    for expected in ("empirical-graph", "success rate", "hidden_sizes", agent.dataset.content_hash, "Learning curves"):
        assert expected in text
    assert list(tmp_path.iterdir()) == [tmp_path / "report.html"]


def test_without_a_layout_there_are_tables_only(trained: Path, tmp_path: Path) -> None:
    agent = TrainedAgent.open(trained)
    evaluator = Evaluator(without_layout(agent.dataset))
    subject = evaluator.agent(agent.agent, "iqe")
    write_report(tmp_path / "report.html", [agent], evaluator, [subject], [evaluator.score(subject)])
    page = (tmp_path / "report.html").read_text()
    assert page.count("<img") == 1  # learning curves
    assert re.search("triangle violations<small>[^<]*</small></th><td>0.0000</td>", page)
    assert "There is no world to plan in. Triples that violate the triangle inequality: iqe 0.00%." in page
    assert "success rate" not in page
    assert "Learned distances" in page


def test_a_task_with_an_unreachable_goal(trained: Path, tmp_path: Path) -> None:
    agent = TrainedAgent.open(trained)
    layout = Layout("########\n#S.G#..#\n########")
    evaluator = Evaluator(Dataset.from_arrays(layout.observations[:3], [1, 1], [2], num_actions=4, layout=layout))
    subject = evaluator.agent(agent.agent, "iqe")
    write_report(tmp_path / "r.html", [agent], evaluator, [subject], [evaluator.score(subject)], goal=(5, 1))
    assert "<figcaption>A task with an unreachable goal: failed (" in (tmp_path / "r.html").read_text()


def test_every_row_is_explained(trained: Path, tmp_path: Path) -> None:
    agent = TrainedAgent.open(trained)
    evaluator = Evaluator(agent.dataset)
    subject = evaluator.agent(agent.agent, "iqe")
    results = [evaluator.score(scored) for scored in [subject, *evaluator.references()]]
    write_report(tmp_path / "report.html", [agent], evaluator, [subject], results)
    page = html.unescape((tmp_path / "report.html").read_text())
    rows = metric_rows(results)
    assert len(rows) > 20
    for metric, values in rows:
        cells = "".join(f"<td>{value}</td>" for value in values)
        assert f'<th scope="row">{metric.title}<small>{metric.help}</small></th>{cells}' in page


def test_the_links_to_the_explorer(trained: Path, tmp_path: Path) -> None:
    agent = TrainedAgent.open(trained)
    evaluator = Evaluator(agent.dataset)
    subject = evaluator.agent(agent.agent, "iqe")
    path = tmp_path / "reports" / "report.html"
    write_report(path, [agent], evaluator, [subject], [evaluator.score(subject)], explorer=tmp_path / "my page.html")
    assert re.findall('href="([^#"][^"]*)"', path.read_text()) == ["../my%20page.html", "../my%20page.html#run=iqe"]
