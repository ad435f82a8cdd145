import importlib
import subprocess
import sys
from typing import Any

import pytest

from qrl import list_learners, register_learner
from qrl.agents.errors import LearnerError
from qrl.agents.learners import registry
from qrl.agents.learners.registry import find_learner, find_settings, owners
from qrl.agents.learners.settings import LearnerSettings, MboldSettings
from qrl.common.errors import RegistryError
from tests.agents.learners.toys import Toy, ToySettings

pytestmark = pytest.mark.usefixtures("restored_registry")


@pytest.mark.parametrize(("name", "settings"), registry._BUILTIN.items())
def test_a_built_in_learner_is_the_one_of_its_module(name: str, settings: type[LearnerSettings]) -> None:
    importlib.import_module(f"qrl.agents.learners.{name}")
    learner = find_learner(name)
    assert learner.cls.__module__ == f"qrl.agents.learners.{name}"
    assert learner.settings is find_settings(name) is settings
    assert (learner.name, learner.origin, settings().name) == (name, "qrl", name)
    assert learner.meaning.startswith(sys.modules[learner.cls.__module__].__doc__[:40])  # type: ignore[index]


def test_all_built_in_learners_are_listed() -> None:
    assert set(registry._BUILTIN) <= set(list_learners())
    assert {"mbold", "qrl", "mad", "cmd", "tmd", "iql", "gcbc", "regression"} == set(registry._BUILTIN)


def test_settings_need_no_torch_and_a_learner_none_of_the_others() -> None:
    program = (
        "import sys; from qrl.agents.learners import registry\n"
        "for name in registry._BUILTIN: registry.find_settings(name)\n"
        "registry.owners('epsilon', 'trajectories')\n"
        "assert 'torch' not in sys.modules\n"
        "registry.find_learner('gcbc')\n"
        "assert 'qrl.agents.learners.gcbc' in sys.modules\n"
        "assert not {f'qrl.agents.learners.{name}' for name in ('mbold', 'qrl', 'tmd')} & set(sys.modules)\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def test_a_plugins_learner() -> None:
    register_learner("toy", ToySettings)(Toy)
    learner = find_learner("toy")
    assert (learner.cls, learner.settings, learner.origin) == (Toy, ToySettings, Toy.__module__)
    assert learner.meaning == "Regression on the hindsight steps of future goals."
    assert "toy" in list_learners()


@pytest.mark.parametrize("settings", [None, "ToySettings", int, ToySettings()])
def test_a_learner_without_settings_is_told_how_to_have_some(settings: Any) -> None:
    message = (
        r"^learner toy: Toy has no settings; write class ToySettings\(LearnerSettings\), with LearnerSettings from "
        r"qrl\.agents\.learners\.settings, and @register_learner\(\"toy\", ToySettings\)$"
    )
    with pytest.raises(RegistryError, match=message):
        register_learner("toy", settings)(Toy)
    assert "toy" not in list_learners()


@pytest.mark.parametrize(("cls", "label"), [(int, "int"), (3, "3"), (LearnerSettings, "LearnerSettings")])
def test_only_learners_can_be_registered(cls: Any, label: str) -> None:
    message = rf"^learner toy: {label} is not a subclass of Learner; write class {label}\(Learner\), with Learner"
    with pytest.raises(RegistryError, match=message):
        register_learner("toy", ToySettings)(cls)
    assert "toy" not in list_learners()


def test_taken_names() -> None:
    with pytest.raises(RegistryError, match="the learner name 'mbold' is taken by qrl; choose another"):
        register_learner("mbold", ToySettings)(Toy)


def test_every_key_needs_a_default() -> None:
    class Demanding(LearnerSettings):
        weight: float

    with pytest.raises(RegistryError, match=r"^learner toy: the key weight of Demanding has no default; give it one"):
        register_learner("toy", Demanding)(Toy)
    assert "toy" not in list_learners()


def test_settings_name_their_learner() -> None:
    class Plain(MboldSettings):
        pass

    class Named(LearnerSettings):
        name: str = "other"

    register_learner("plain", Plain)(Toy)
    register_learner("named", Named)(type("Another", (Toy,), {}))
    assert Plain().name == "plain"
    assert Plain.from_values({"name": "given"}, "test").name == "given"
    assert "(default: plain)" in Plain.help().splitlines()[0]
    assert Named().name == "other"
    assert MboldSettings().name == "mbold"
    assert LearnerSettings().name == "mbold"


def test_unknown_learners() -> None:
    message = r"^unknown learner 'gbcb' \(did you mean 'gcbc'\?\); known: .*iql, .*; a learner of your own"
    for find in (find_learner, find_settings):
        with pytest.raises(RegistryError, match=message):
            find("gbcb")


def test_who_has_a_key() -> None:
    assert owners("epsilon", "trajectories") == ["qrl"]
    assert owners("polyak", "trajectories") == ["mbold", "iql"]
    assert owners("triangle", "trajectories") == ["mbold"]
    assert owners("triangle", "graph") == ["regression"]
    assert owners("weight", "trajectories") == []
    register_learner("toy", ToySettings)(Toy)
    assert owners("weight", "trajectories") == ["toy"]


def test_a_plugin_that_cannot_be_built_is_named() -> None:
    class Failing(Toy):
        def __init__(self, *arguments: Any) -> None:
            raise error

    register_learner("toy", ToySettings)(Failing)
    nothing: Any = None
    error: Exception = KeyError("weights")
    with pytest.raises(RegistryError, match=r"^learner toy: Failing cannot be built: KeyError: 'weights'$"):
        find_learner("toy").build(nothing, nothing, nothing, ToySettings(), 0)
    error = LearnerError("learner toy: too little data")
    with pytest.raises(LearnerError, match=r"^learner toy: too little data$"):
        find_learner("toy").build(nothing, nothing, nothing, ToySettings(), 0)


def test_an_error_of_qrls_own_is_not_disguised() -> None:
    nothing: Any = None
    with pytest.raises(AttributeError):
        find_learner("mbold").build(nothing, nothing, nothing, MboldSettings(), 0)
