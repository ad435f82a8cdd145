import pytest

from qrl import list_learners, register_learner
from qrl.agents.learners.catalog import describe_learner, table_of_learners
from qrl.common.errors import RegistryError
from tests.agents.learners.toys import Toy, ToySettings

pytestmark = pytest.mark.usefixtures("restored_registry")


def rows() -> dict[str, list[str]]:
    """The cells of the table by learner."""
    table, _ = table_of_learners().split("\n\n")
    _, _, *lines = table.splitlines()
    return {line.split()[0]: [cell.strip() for cell in line.split("  ") if cell.strip()] for line in lines}


def test_the_table_has_every_learner() -> None:
    assert list(rows()) == list_learners()
    assert rows()["qrl"] == ["qrl", "Quasimetric RL", "quasimetrics", "distances", "train-agent", "qrl"]
    assert rows()["mad"][2:4] == ["state-action goals", "distances"]
    assert rows()["gcbc"][2:4] == ["all", "scores"]
    assert rows()["regression"][4] == "train-graph"
    assert table_of_learners().endswith("\n\nlist-learners NAME shows the objective and the keys of one")


def test_a_plugins_learner_is_described_by_its_class() -> None:
    register_learner("toy", ToySettings)(Toy)
    origin = Toy.__module__
    title = "Regression on the hindsight steps of future goals"
    assert rows()["toy"] == ["toy", title, "all", "distances", "train-agent", origin]
    lines = describe_learner("toy").splitlines()
    assert lines[:2] == [f"toy (from {origin})", f"{title}."]
    assert any(line.split() == ["learner.weight", "(default:", "1.0)"] for line in lines)


def test_a_learner_without_a_docstring() -> None:
    register_learner("silent", ToySettings)(type("Silent", (Toy,), {"__doc__": None}))
    assert rows()["silent"][1:3] == ["all", "distances"]
    assert describe_learner("silent").splitlines()[1:3] == ["", ""]


@pytest.mark.parametrize("name", list_learners())
def test_the_description_has_the_objective_and_every_key(name: str) -> None:
    text = describe_learner(name)
    assert text.startswith(f"{name} (from qrl)\n")
    command = "train-graph" if name == "regression" else "train-agent"
    assert f"\n\nkeys, for {command} learner.name={name}:\n" in text
    keys = text.split(f"learner.name={name}:\n")[1].splitlines()
    assert all(line.startswith("  learner.") for line in keys)
    assert any(line.split()[0] == "learner.lr" for line in keys)
    assert f"(default: {name})" in keys[0]


def test_nested_keys_are_spelled_as_they_are_given() -> None:
    assert "\n  learner.goals.future " in describe_learner("gcbc")
    assert "\n  learner.epsilon " in describe_learner("qrl")
    assert "learner.epsilon" not in describe_learner("gcbc")


def test_unknown_learners() -> None:
    with pytest.raises(RegistryError, match=r"unknown learner 'gcbd' .*did you mean 'gcbc'"):
        describe_learner("gcbd")
