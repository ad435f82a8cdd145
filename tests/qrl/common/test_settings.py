import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import Field, field_validator

from qrl.common.errors import ConfigError
from qrl.common.settings import Settings


class Inner(Settings):
    rate: float = Field(0.5, gt=0, le=1, description="how fast")
    steps: int | None = Field(None, ge=1, description="how long")


class Outer(Settings):
    name: str = Field("none", description="what it is called")
    folder: str | None = Field(None, description="where it lies")
    flag: bool = Field(False, description="whether")
    inner: Inner = Field(Inner(), description="the inner part")
    params: dict[str, Any] = Field(default_factory=dict, description="anything")


def write(folder: Path, text: str) -> str:
    path = folder / "config.yaml"
    path.write_text(text)
    return str(path)


def test_overrides_take_precedence_over_the_file_and_the_file_over_defaults(tmp_path: Path) -> None:
    config = write(tmp_path, "name: from file\ninner:\n  rate: 3e-4\n  steps: 5\n")
    assert Outer.load() == Outer()
    assert Outer.load(config).inner == Inner(rate=3e-4, steps=5)
    settings = Outer.load(config, ["inner.steps=7", "flag=true", "name=by hand"])
    assert settings == Outer(name="by hand", flag=True, inner=Inner(rate=3e-4, steps=7))


class Slow(Outer):
    inner: Inner = Field(Inner(rate=0.125), description="the inner part")


def test_a_group_keeps_the_defaults_of_its_owner() -> None:
    assert Slow.load(None, ["inner.steps=7"]).inner == Inner(rate=0.125, steps=7)
    assert Slow.load(None, ["inner.rate=1"]).inner == Inner(rate=1)
    assert re.search(r"inner.rate +how fast \(default: 0.125\)", Slow.help())
    assert re.search(r"inner.rate +how fast \(default: 0.5\)", Outer.help())


@pytest.mark.parametrize(
    ("override", "key", "value"),
    [
        ("name=007", "name", "007"),
        ("name=no", "name", "no"),
        ("name=1e3", "name", "1e3"),
        ("name=a=b", "name", "a=b"),
        ("name={", "name", "{"),
        ("name=2024-02-30", "name", "2024-02-30"),
        ("folder=2026", "folder", "2026"),
        ("folder=null", "folder", None),
        ("params.switch=off", "params", {"switch": "off"}),
        ("params.switch=false", "params", {"switch": False}),
        ("params.lr=1e-4", "params", {"lr": 1e-4}),
        ("inner.steps=010", "inner", Inner(steps=10)),
        ("params.sizes=[1, 2]", "params", {"sizes": [1, 2]}),
        ("params.deep.er=x", "params", {"deep": {"er": "x"}}),
    ],
)
def test_override_values(override: str, key: str, value: object) -> None:
    assert getattr(Outer.load(overrides=[override]), key) == value


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["nmae=x"], r"settings: unknown key 'nmae' \(did you mean 'name'\?\); known: flag, folder, inner.\*, name"),
        (["inner.rte=1"], r"unknown key 'inner.rte' \(did you mean 'inner.rate'\?\); known in inner: rate, steps$"),
        (["inner.rate=2"], r"inner.rate: input should be less than or equal to 1 \(got 2\)"),
        (["inner.rate=nan"], r"inner.rate: input should be"),
        (["inner.rate=fast"], r"inner.rate: input should be a valid number.*\(got 'fast'\)"),
        (["inner.steps=1.5"], r"inner.steps: input should be a valid integer"),
        (["inner.steps=1:30"], r"inner.steps: input should be a valid integer.*\(got '1:30'\)"),
        (["inner=3"], r"settings: inner is a group of keys: inner.rate, inner.steps$"),
        (["name.first=x"], r"name: input should be a valid string"),
        (["name=x", "name.first=x"], r"name.first: name is a value, not a group of keys"),
        (["justaword"], r"'justaword' is not of the form key=value"),
        (["=3"], r"'=3' is not of the form key=value"),
        (["flag=maybe", "inner.rate=0"], r"flag: .*; inner.rate: "),
    ],
)
def test_bad_overrides(overrides: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Outer.load(overrides=overrides)


def test_an_error_without_a_message() -> None:
    class Silent(Settings):
        weight: float = 1

        @field_validator("weight")
        @classmethod
        def _check(cls, value: float) -> float:
            raise ValueError

    with pytest.raises(ConfigError, match=r"^settings: weight: not allowed \(got 2\)$"):
        Silent.load(overrides=["weight=2"])


@pytest.mark.parametrize(
    ("override", "nearest"),
    [
        ("inner.step=3", "inner.steps"),  # spelling
        ("steps=3", "inner.steps"),  # the same last component in another group
        ("iner.rate=1", "inner.rate"),
        ("optimizer.rate=1", "inner.rate"),
        ("iner=1", "inner"),
        ("inner.how_fast=1", "inner.rate"),  # words of the description
        ("params_of_it=1", None),
        ("inner.1=1", None),
    ],
)
def test_suggestions_for_unknown_keys(override: str, nearest: str | None) -> None:
    with pytest.raises(ConfigError) as caught:
        Outer.load(overrides=[override])
    suggestion = f" (did you mean {nearest!r}?)" if nearest else ""
    assert f"unknown key {override.partition('=')[0]!r}{suggestion}; known" in str(caught.value)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("learner.learning_rate=1", "unknown key 'learner.learning_rate' (did you mean 'learner.lr'?)"),
        ("lr=0.1", "unknown key 'lr' (did you mean 'learner.lr'?)"),
        ("learner.min_step=3", "unknown key 'learner.min_step' (did you mean 'learner.min_steps'?)"),
        ("learner.batch=3", "unknown key 'learner.batch' (did you mean 'learner.batch_size'?)"),
        ("learner.gamma=0.9", "unknown key 'learner.gamma' (did you mean 'learner.discount'?)"),
        ("model=mrn", "settings: model is a group of keys; did you mean model.name=mrn?"),
    ],
)
def test_suggestions_for_training_settings(override: str, message: str) -> None:
    from qrl.agents.runs.settings import TrainSettings

    with pytest.raises(ConfigError) as caught:
        TrainSettings.load(overrides=[override])
    assert message in str(caught.value)
    assert len(str(caught.value)) < 400  # the keys of one group, not all


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rate: 3", "config.yaml: unknown key 'rate'"),
        ("inner: {rate: -1}", r"config.yaml: inner.rate: input should be greater than 0 \(got -1\)"),
        ("- a\n- b", "config.yaml: expected 'key: value' lines"),
        ("1: a", "config.yaml: expected 'key: value' lines"),
        ("name: [", "config.yaml is not valid YAML"),
        ("name: a\nname: b", "duplicate key 'name'"),
        ("name: !!python/object/apply:os.system ['true']", "config.yaml is not valid YAML"),
        ("x" * 2_000_000, "config.yaml is larger than"),
    ],
)
def test_bad_files(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError if "larger" not in message else ValueError, match=message):
        Outer.load(write(tmp_path, text))


def test_an_empty_file_means_defaults(tmp_path: Path) -> None:
    assert Outer.load(write(tmp_path, "# nothing\n")) == Outer()


def test_settings_are_immutable() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Outer().name = "other"  # type: ignore[misc]


def test_help_lists_every_key_with_default_and_meaning() -> None:
    lines = Outer.help().splitlines()
    assert [line.split()[0] for line in lines] == ["name", "folder", "flag", "inner.rate", "inner.steps", "params"]
    assert lines[3] == "  inner.rate   how fast (default: 0.5)"
    assert lines[4] == "  inner.steps  how long"  # a default of None says nothing


def test_long_keys_do_not_widen_the_help() -> None:
    class Wordy(Settings):
        short: int = Field(description="brief")
        a_key_that_is_longer_than_the_column: int = Field(1, description="verbose")

    assert Wordy.help().splitlines() == [
        "  short  brief (required)",
        "  a_key_that_is_longer_than_the_column",
        "         verbose (default: 1)",
    ]


def test_the_meanings_of_training_settings_are_aligned() -> None:
    from qrl.agents.runs.settings import TrainSettings

    lines = TrainSettings.help().splitlines()
    (column,) = {re.match(r"  \S+ +", line).end() for line in lines}  # type: ignore[union-attr]
    assert column < 40
    assert "None" not in TrainSettings.help()


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("rate", "inner.rate"),
        ("inner.rate", "inner.rate"),
        ("nmae", "name"),
        ("inner", None),  # a group, without a name
        ("absent", None),
    ],
)
def test_nearest_key(name: str, key: str | None) -> None:
    assert Outer.nearest_key(name) == key
