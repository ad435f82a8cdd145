import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from qrl import QModelSpec, list_q_models, make_q_model, register_head, register_q_model, registry
from qrl.common.errors import ConfigError
from qrl.errors import RegistryError, ShapeError
from qrl.heads import IQE, Head
from qrl.q_models import QModel

SPEC = QModelSpec(observation_dim=3, num_actions=2, discount=0.9)


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    """Leave the registry as it was."""
    list_q_models()
    before = dict(registry._registrations)
    yield
    registry._registrations.clear()
    registry._registrations.update(before)
    for name in ("good_plugin", "bad_plugin"):
        sys.modules.pop(name, None)


class Mine(Head):
    guaranteed_quasimetric = True

    def __init__(self, input_size: int, power: int, discount: float = 0.5) -> None:
        super().__init__(input_size)
        self.power, self.discount = power, discount


def test_a_registered_head_becomes_a_q_model() -> None:
    register_head("mine", power=3)(Mine)
    model: Any = make_q_model("mine", SPEC, latent_size=5, hidden_sizes=[7])
    assert (model.head.power, model.head.input_size, model.head.discount) == (3, 5, 0.9)
    assert model.encode(torch.zeros(4, 3)).shape == (4, 2, 5)
    model = make_q_model("mine", SPEC, power="4", hidden_sizes=())
    assert model.head.power == 4
    found = registry.find("mine")
    assert (found.family, found.origin) == ("Mine", __name__)


def test_names_only_set_defaults() -> None:
    model: Any = make_q_model("iqe-sum", SPEC, reduction="max", hidden_sizes=())
    assert type(model.head.reduction).__name__ == "Max"


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"hidden_size": 3}, r"model iqe-sum: unknown key 'hidden_size' \(did you mean 'hidden_sizes'\?\)"),
        ({"dim_per_component": "many"}, "model iqe-sum: dim_per_component: input should be a valid integer"),
        ({"dim_per_component": 0}, "model iqe-sum: dim_per_component: input should be greater than or equal to 1"),
        ({"hidden_sizes": 3}, "model iqe-sum: hidden_sizes"),
        ({"discount": 0.5}, "unknown key 'discount'"),
        ({"reduction": "median"}, "unknown reduction 'median'"),
    ],
)
def test_bad_parameters(params: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make_q_model("iqe-sum", SPEC, **params)


def test_sizes_that_do_not_fit() -> None:
    with pytest.raises(ShapeError, match="input_size 10 cannot be split"):
        make_q_model("iqe-sum", SPEC, latent_size=10)
    with pytest.raises(ShapeError, match="must be even"):
        make_q_model("deep-norm", SPEC, num_components=7)


def test_a_missing_parameter_is_named() -> None:
    register_head("mine")(Mine)
    with pytest.raises(ConfigError, match="model mine: power: field required"):
        make_q_model("mine", SPEC)


def test_unknown_names() -> None:
    with pytest.raises(RegistryError, match=r"unknown model 'iqe-maxmeen' \(did you mean 'iqe-maxmean'\?\).*--plugin"):
        make_q_model("iqe-maxmeen", SPEC)


def test_taken_names() -> None:
    with pytest.raises(RegistryError, match="'iqe-sum' is taken by qrl"):
        register_head("iqe-sum")(Mine)
    register_head("mine", power=1)(Mine)
    with pytest.raises(RegistryError, match=f"'mine' is taken by {__name__}"):
        register_q_model("mine")(type("Another", (QModel,), {}))
    register_head("mine", power=2)(Mine)  # the same class again, as from a notebook's cell run twice
    model: Any = make_q_model("mine", SPEC, hidden_sizes=())
    assert model.head.power == 2
    assert make_q_model("iqe-sum", SPEC, hidden_sizes=()).head.__class__ is IQE


def test_defaults_that_are_no_parameters() -> None:
    register_head("mine", pover=2)(Mine)
    with pytest.raises(RegistryError, match=r"model mine: unknown parameter 'pover' \(did you mean 'power'\?\)"):
        make_q_model("mine", SPEC)


def test_a_head_must_not_take_the_encoders_names() -> None:
    class Wide(Head):
        def __init__(self, input_size: int, hidden_sizes: int = 3) -> None:
            super().__init__(input_size)

    register_head("wide")(Wide)
    with pytest.raises(RegistryError, match="'hidden_sizes' is also the encoder's"):
        make_q_model("wide", SPEC)


def test_open_signatures_are_refused() -> None:
    class Open(QModel):
        def __init__(self, spec: QModelSpec, **anything: int) -> None:
            super().__init__(spec)

    register_q_model("open")(Open)
    with pytest.raises(ConfigError, match="name its parameters one by one"):
        make_q_model("open", SPEC)


PLUGIN = """
from qrl import register_q_model
from qrl.q_models import QModel

@register_q_model("from-a-file")
class FromAFile(QModel):
    pass
"""


def test_plugin_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "good_plugin.py").write_text(PLUGIN)
    registry.load_plugin("good_plugin")
    assert registry.find("from-a-file").origin == "good_plugin"


def test_a_plugin_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "bad_plugin.py").write_text(PLUGIN + "\nraise OSError('no licence')\n")
    with pytest.raises(RegistryError, match="the plugin bad_plugin could not be loaded: OSError: no licence"):
        registry.load_plugin("bad_plugin")
    assert "from-a-file" not in list_q_models()
    with pytest.raises(RegistryError, match="ModuleNotFoundError: No module named 'absent_plugin'"):
        registry.load_plugin("absent_plugin")


def test_discount_reaches_heads_that_ask_for_it() -> None:
    half, most = (make_q_model("pqe-lh", QModelSpec(3, 2, discount), hidden_sizes=()) for discount in (0.5, 0.9))
    most.load_state_dict(half.state_dict())
    z: Tensor = half.encode(torch.randn(4, 3))
    arguments = z[:2], None, z[2:], None
    # The same weights mean the same discounts, so longer distances where the discount is milder.
    torch.testing.assert_close(half.discounted(*arguments), most.discounted(*arguments))
    assert (most.distance(*arguments) > half.distance(*arguments)).all()
