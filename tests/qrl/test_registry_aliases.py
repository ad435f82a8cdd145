"""Names of a model with some of its parameters fixed."""

from typing import Any

import pytest

from qrl import QModelSpec, make_q_model, registry
from qrl.common.errors import ConfigError
from qrl.readouts import READOUTS

SPEC = QModelSpec(observation_dim=3, num_actions=2, discount=0.9)


@pytest.mark.parametrize("model", ["dot", "unconstrained", "unconstrained-state"])
@pytest.mark.parametrize("readout", READOUTS)
def test_an_alias_is_the_model_with_that_readout(model: str, readout: str) -> None:
    alias: Any = make_q_model(f"{model}-{readout}", SPEC, hidden_sizes=(4,))
    chosen: Any = make_q_model(model, SPEC, hidden_sizes=(4,), readout=readout)
    assert type(alias) is type(chosen)
    assert type(alias.readout) is type(chosen.readout) is READOUTS[readout]
    assert alias.goal_kind == chosen.goal_kind
    assert {key: value.shape for key, value in alias.state_dict().items()} == {
        key: value.shape for key, value in chosen.state_dict().items()
    }


def test_readouts_default_to_the_sigmoid() -> None:
    for model in ("dot", "unconstrained", "unconstrained-state"):
        assert registry.find(model).sized({}, 8, None)["readout"] == "disc-sigmoid"


def test_an_alias_refuses_another_readout_from_the_user() -> None:
    message = "readout: the name dot-disc means 'disc'; to choose it, use the model dot .got 'dist'"
    with pytest.raises(ConfigError, match=f"model dot-disc: {message}"):
        make_q_model("dot-disc", SPEC, readout="dist")
    with pytest.raises(ConfigError, match=f"model dot-disc: {message}"):
        registry.find("dot-disc").sized({"readout": "dist"}, 8, None)
    with pytest.raises(ConfigError, match=f"model.params: {message}"):
        registry.find("dot-disc").parameters.from_values({"readout": "dist"}, "model.params")
    assert registry.find("dot-disc").sized({"readout": "disc"}, 8, None)["readout"] == "disc"


def test_checkpoints_load_under_an_alias_even_with_another_readout() -> None:
    """Earlier versions trained dot-disc-sigmoid with readout: dist, and stored both."""
    for readout in READOUTS:
        model: Any = registry.find("dot-disc-sigmoid").make(SPEC, {"readout": readout, "hidden_sizes": [4]})
        assert type(model.readout) is READOUTS[readout]


@pytest.mark.parametrize(
    ("name", "model", "fixed", "other"),
    [
        ("iqe-maxmean", "iqe", {"reduction": "maxmean"}, "mean"),
        ("iqe-sum", "iqe", {"reduction": "sum"}, "max"),
        ("mrn-fixed", "mrn", {"fixed": True}, False),
        ("deep-norm-fixed", "deep-norm", {"fixed": True}, False),
        ("unconstrained-state", "unconstrained", {"goal_kind": "state"}, "state-action"),
        ("unconstrained-state-disc", "unconstrained", {"goal_kind": "state", "readout": "disc"}, "state-action"),
    ],
)
def test_a_name_that_states_a_value_fixes_it(name: str, model: str, fixed: dict[str, Any], other: Any) -> None:
    registration = registry.find(name)
    assert (registration.alias_of, registration.fixed) == (model, fixed)
    assert fixed.items() <= registration.sized({}, 8, None).items()
    built, expected = (make_q_model(key, SPEC, hidden_sizes=(4,), **fixed) for key in (name, model))
    assert repr(built) == repr(expected)
    assert built.goal_kind == expected.goal_kind
    key, value = next(iter(fixed.items()))
    message = f"{key}: the name {name} means {value!r}; to choose it, use the model {model} .got {other!r}"
    for call in (make_q_model, lambda name, _, **params: registration.sized(params, 8, None)):
        with pytest.raises(ConfigError, match=f"model {name}: {message}"):
            call(name, SPEC, **{key: other})
    # Earlier versions accepted contradictions, and stored them in checkpoints.
    old = registration.make(SPEC, {"hidden_sizes": [4], key: other})
    assert repr(old) == repr(make_q_model(model, SPEC, hidden_sizes=(4,), **{**fixed, key: other}))
    assert old.goal_kind == (other if key == "goal_kind" else "state-action")


def test_unknown_readouts_are_refused_before_a_model_is_built() -> None:
    with pytest.raises(ConfigError, match=r"unknown readout 'dst' \(did you mean 'dist'\?\)"):
        registry.find("dot").parameters.from_values({"readout": "dst"}, "model.params")
