import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import qrl.heads
from qrl import QModelSpec, list_q_models, make_q_model, register_head, register_q_model, registry
from qrl.common.errors import ConfigError, RegistryError
from qrl.errors import ContractError, ShapeError
from qrl.heads import IQE, Head
from qrl.q_models import QModel

SPEC = QModelSpec(observation_dim=3, num_actions=2, discount=0.9)


pytestmark = pytest.mark.usefixtures("restored_registry")


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
    registration = registry.find("mine")
    assert (registration.family, registration.origin) == ("Mine", __name__)


def test_defaults_of_a_name_can_be_changed() -> None:
    register_head("mine", power=3)(Mine)
    model: Any = make_q_model("mine", SPEC, power=4, hidden_sizes=())
    assert model.head.power == 4


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"hidden_size": 3}, r"model iqe-sum: unknown key 'hidden_size' \(did you mean 'hidden_sizes'\?\)"),
        ({"dim_per_component": "many"}, "model iqe-sum: dim_per_component: input should be a valid integer"),
        ({"dim_per_component": 0}, "model iqe-sum: dim_per_component: input should be greater than or equal to 1"),
        ({"hidden_sizes": 3}, "model iqe-sum: hidden_sizes"),
        ({"discount": 0.5}, "unknown key 'discount'"),
    ],
)
def test_bad_parameters(params: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make_q_model("iqe-sum", SPEC, **params)


def test_unknown_reductions() -> None:
    with pytest.raises(ConfigError, match="unknown reduction 'median'"):
        make_q_model("iqe", SPEC, reduction="median")


def test_sizes_that_do_not_fit() -> None:
    with pytest.raises(ShapeError, match="input_size 10 cannot be split"):
        make_q_model("iqe-sum", SPEC, latent_size=10)
    with pytest.raises(ShapeError, match="must be even"):
        make_q_model("deep-norm", SPEC, num_components=7)


def test_a_missing_parameter_is_named() -> None:
    register_head("mine")(Mine)
    with pytest.raises(ConfigError, match="model mine: power: field required"):
        make_q_model("mine", SPEC)


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("iqe-maxmeen", "iqe-maxmean"),
        ("mrn-fix", "mrn-fixed"),
        ("IQE_sum", "iqe-sum"),
        ("dot-dist-expo", "dot-dist-exp"),
    ],
)
def test_unknown_names(name: str, nearest: str) -> None:
    message = rf"unknown model '{name}' \(did you mean '{nearest}'\?\); known: .*--plugin"
    with pytest.raises(RegistryError, match=message) as caught:
        make_q_model(name, SPEC)
    assert "known: deep-norm, deep-norm-fixed, dot, euclidean" in str(caught.value)  # aliases are omitted


# Sizes


@pytest.mark.parametrize("name", list_q_models())
def test_sizes_of_qrls_models_follow_width_and_latent_size(name: str) -> None:
    registration = registry.find(name)
    unconstrained = name.startswith("unconstrained")
    default = registration.sized({}, 64, None)
    assert default["hidden_sizes"] == [64, 64, 64, *([256] if unconstrained else [])]
    assert default.get("latent_size") == (None if unconstrained else 256)
    small = registration.sized({}, 64, 16)
    assert small["hidden_sizes"] == [64, 64, 64, *([16] if unconstrained else [])]
    assert small.get("latent_size") == (None if unconstrained else 16)
    params: dict[str, Any] = {"hidden_sizes": (5, 6)} | ({} if unconstrained else {"latent_size": 8})
    assert params.items() <= registration.sized(params, 64, 16).items()
    assert default.keys() == registration.parameters.model_fields.keys()


def test_sizes_of_a_plugins_head_follow_too() -> None:
    register_head("mine", power=3)(Mine)
    assert registry.find("mine").sized({"batch_norm": "false"}, 64, 16) == {
        "power": 3,
        "latent_size": 16,
        "hidden_sizes": [64, 64, 64],
        "batch_norm": False,
    }
    register_head("tapered", power=3, hidden_sizes=(32, 8))(Mine)
    assert registry.find("tapered").sized({}, 64, 16)["hidden_sizes"] == [64, 8]
    register_head("linear", power=3, hidden_sizes=())(Mine)
    assert registry.find("linear").sized({}, 64, None)["hidden_sizes"] == []


def test_a_plugins_complete_model_keeps_its_sizes() -> None:
    class Complete(QModel):
        def __init__(self, spec: QModelSpec, hidden_sizes: tuple[int, ...] = (32, 8), latent_size: int = 4) -> None:
            super().__init__(spec)

    register_q_model("complete")(Complete)
    assert registry.find("complete").sized({}, 64, 16) == {"hidden_sizes": (32, 8), "latent_size": 4}


# Registration


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


def test_defaults_that_are_not_parameters() -> None:
    register_head("mine", pover=2)(Mine)
    with pytest.raises(RegistryError, match=r"model mine: unknown parameter 'pover' \(did you mean 'power'\?\)"):
        make_q_model("mine", SPEC)


def test_a_head_must_not_take_the_encoders_names() -> None:
    class Wide(Head):
        guaranteed_quasimetric = False

        def __init__(self, input_size: int, hidden_sizes: int = 3) -> None:
            super().__init__(input_size)

    register_head("wide")(Wide)
    with pytest.raises(RegistryError, match="'hidden_sizes' is also the encoder's"):
        make_q_model("wide", SPEC)


@pytest.mark.parametrize("declaration", [{}, {"guaranteed_quasimetric": "yes"}])
def test_a_head_must_declare_whether_it_is_a_quasimetric(declaration: dict[str, Any]) -> None:
    with pytest.raises(
        RegistryError, match=r"model silent: the head Silent does not declare .* write guaranteed_quasi"
    ):
        register_head("silent")(type("Silent", (Head,), declaration))
    assert "silent" not in list_q_models()


def test_a_head_may_decide_whether_it_is_a_quasimetric() -> None:
    class Computed(Mine):
        @property
        def guaranteed_quasimetric(self) -> bool:  # type: ignore[override]
            return self.power == 1

    register_head("computed")(Computed)
    for power in (1, 2):
        model = make_q_model("computed", SPEC, power=power, hidden_sizes=())
        assert model.guaranteed_quasimetric == (power == 1)


@pytest.mark.parametrize(
    ("register", "cls", "message"),
    [
        (
            register_head,
            nn.Module,
            r"Module is not a subclass of Head; write class Module\(Head\), with Head from qrl\.h",
        ),
        (register_head, QModel, "QModel is not a subclass of Head; .* or use @register_q_model$"),
        (register_q_model, Mine, r"Mine is not a subclass of QModel; .* from qrl\.q_models, .* or use @register_head$"),
        (register_q_model, 3, "3 is not a subclass of QModel"),
    ],
)
def test_only_heads_and_q_models_can_be_registered(register: Any, cls: Any, message: str) -> None:
    with pytest.raises(RegistryError, match=f"model mine: {message}"):
        register("mine")(cls)
    assert "mine" not in list_q_models()


class Failing(Head):
    guaranteed_quasimetric = True

    def __init__(self, input_size: int, error: str) -> None:
        super().__init__(input_size)
        raise {"key": KeyError("weights"), "missing": NotImplementedError(), "shape": ShapeError("odd")}[error]


def test_a_plugin_that_cannot_be_built_is_named() -> None:
    register_head("failing")(Failing)
    for error, message in (("key", "KeyError: 'weights'"), ("missing", "NotImplementedError: ")):
        with pytest.raises(ContractError, match=f"^model failing: Failing cannot be built: {message}$"):
            make_q_model("failing", SPEC, error=error)
    with pytest.raises(ShapeError, match=r"^odd$"):
        make_q_model("failing", SPEC, error="shape")

    @register_q_model("unprepared")
    class Unprepared(QModel):
        def __init__(self, spec: QModelSpec) -> None:
            self.layer = nn.Linear(2, 2)

    with pytest.raises(ContractError, match=r"Unprepared cannot be built: AttributeError: .*before Module.__init__"):
        make_q_model("unprepared", SPEC)


@pytest.mark.parametrize("read", [Tensor.item, Tensor.tolist, Tensor.numpy])
def test_on_the_meta_device_plugins_that_read_values_are_not_implemented(read: Callable[[Tensor], Any]) -> None:
    class Reads(Mine):
        def __init__(self, input_size: int) -> None:
            super().__init__(input_size, 1)
            self.shift = read(torch.zeros(()))

    register_head("reads")(Reads)
    with torch.device("meta"), pytest.raises(NotImplementedError, match="model reads: Reads cannot be built"):
        make_q_model("reads", SPEC)
    make_q_model("reads", SPEC, hidden_sizes=())


def test_a_file_in_the_package_is_enough_to_register_a_head(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "brand_new.py").write_text(
        "from qrl.heads.base import Head\nfrom qrl.registry import register_head\n"
        "@register_head('brand-new')\nclass BrandNew(Head):\n    guaranteed_quasimetric = False\n"
    )
    monkeypatch.setattr(qrl.heads, "__path__", [*qrl.heads.__path__, str(tmp_path)])
    try:
        assert registry.find("brand-new").origin == "qrl"
    finally:
        sys.modules.pop("qrl.heads.brand_new", None)


def test_open_signatures_are_refused() -> None:
    class Open(QModel):
        def __init__(self, spec: QModelSpec, **anything: int) -> None:
            super().__init__(spec)

    register_q_model("open")(Open)
    with pytest.raises(ConfigError, match="name its parameters one by one"):
        make_q_model("open", SPEC)


def test_discount_reaches_heads_that_ask_for_it() -> None:
    half, most = (make_q_model("pqe-lh", QModelSpec(3, 2, discount), hidden_sizes=()) for discount in (0.5, 0.9))
    most.load_state_dict(half.state_dict())
    z: Tensor = half.encode(torch.randn(4, 3))
    arguments = z[:2], None, z[2:], None
    # The same weights mean the same discounts, so longer distances where the discount is milder.
    torch.testing.assert_close(half.discounted(*arguments), most.discounted(*arguments))
    assert (most.distance(*arguments) > half.distance(*arguments)).all()
