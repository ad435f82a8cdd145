"""Registries of named classes, and the plugins that add to them, on two registries of toys."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from qrl.common import plugins
from qrl.common.errors import RegistryError
from qrl.common.plugins import Registry, load_plugin


@dataclass(frozen=True)
class Toy:
    cls: type
    origin: str


class Ball:
    pass


def new_registry(kind: str) -> "Registry[Toy]":
    """With one built-in toy, `kind`-builtin, which is loaded on demand as qrl's own are."""
    registry: Registry[Toy] = Registry(
        kind, f"toys.{kind}", lambda: registry.add(f"{kind}-builtin", Toy(Ball, "the shop"))
    )
    return registry


class Shop:
    """What the plugins below import as `toy_shop`."""

    def __init__(self) -> None:
        self.cars, self.dolls = new_registry("car"), new_registry("doll")

    def register(self, registry: "Registry[Toy]", name: str, cls: type) -> None:
        registry.add(name, Toy(cls, registry.origin(cls)))


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    """Two registries instead of qrl's, and a folder for plugins."""
    monkeypatch.setattr(plugins, "_registries", [])
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    modules = set(sys.modules)
    monkeypatch.setitem(sys.modules, "toy_shop", Shop())
    yield sys.modules["toy_shop"]  # type: ignore[misc]
    for name in set(sys.modules) - modules:
        if name.startswith("toy_"):
            del sys.modules[name]


def plugin(name: str, more: str = "", car: str = "", doll: str = "") -> None:
    """A module in the working directory that registers a car and a doll."""
    Path(f"{name}.py").write_text(
        "import toy_shop as shop\n"
        "class Mine: pass\n"
        f"shop.register(shop.cars, {car or name + '-car'!r}, Mine)\n"
        f"shop.register(shop.dolls, {doll or name + '-doll'!r}, Mine)\n{more}\n"
    )


def install(distribution: str, kind: str, module: str) -> None:
    """As pip would: a distribution of version 1.2 with an entry point."""
    info = Path(f"{distribution.replace('-', '_')}-1.2.dist-info")
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(f"[toys.{kind}]\n{module} = {module}\n")


# Names


def test_taken_names_are_refused(shop: Shop) -> None:
    class Mine:
        pass

    with pytest.raises(RegistryError, match=r"^the car name 'car-builtin' is taken by the shop; choose another$"):
        shop.register(shop.cars, "car-builtin", Mine)  # although nobody has asked for the built-in ones before
    shop.register(shop.cars, "mine", Mine)
    with pytest.raises(RegistryError, match=f"the car name 'mine' is taken by {__name__}; choose another"):
        shop.register(shop.cars, "mine", Ball)
    assert shop.cars.find("mine").cls is Mine
    shop.register(shop.dolls, "mine", Ball)  # another registry


def test_the_same_class_defined_again_replaces_itself(shop: Shop) -> None:
    """As from a notebook's cell that is run twice."""

    def define() -> type:
        class Mine:
            pass

        return Mine

    first, second = define(), define()
    shop.register(shop.cars, "mine", first)
    shop.register(shop.cars, "mine", second)
    assert shop.cars.find("mine").cls is second


def test_unknown_names(shop: Shop) -> None:
    message = (
        r"^unknown car 'car-bultin' \(did you mean 'car-builtin'\?\); known: car-builtin; a car of your own needs "
        r"its plugin: install it, or name its module with --plugin$"
    )
    with pytest.raises(RegistryError, match=message):
        shop.cars.find("car-bultin")
    with pytest.raises(RegistryError, match=r"unknown car 'nothing'; known: none;"):
        shop.cars.find("nothing", listed=lambda toy: False)


# Where classes come from


def test_origins(shop: Shop) -> None:
    plugin("toy_named")
    plugin("toy_installed")
    install("toy-box", "car", "toy_installed")
    load_plugin("toy_named")
    assert shop.cars.find("toy_named-car").origin == "toy_named"
    assert shop.cars.find("toy_installed-car").origin == "toy-box 1.2 (toy_installed)"
    assert shop.dolls.entries["toy_installed-doll"].origin == "toy-box 1.2 (toy_installed)"
    assert shop.cars.origin(Ball) == __name__
    assert shop.cars.origin(Registry) == "qrl"
    lookalike = type("Lookalike", (), {"__module__": "qrl_toys"})
    assert shop.cars.origin(lookalike) == "qrl_toys"


def test_a_plugin_that_loads_others_keeps_its_origin(shop: Shop) -> None:
    plugin("toy_installed")
    install("toy-box", "car", "toy_installed")
    plugin("toy_outer", "assert 'toy_installed-car' in shop.cars.names()\nshop.register(shop.cars, 'later', shop.Car)")
    shop.Car = type("Car", (), {"__module__": "toy_garage"})  # type: ignore[attr-defined]
    load_plugin("toy_outer")
    assert shop.cars.find("later").origin == "toy_outer"


# Installed plugins


def test_installed_plugins_are_listed(shop: Shop) -> None:
    plugin("toy_installed")
    install("toy-box", "car", "toy_installed")
    assert shop.dolls.names() == ["doll-builtin"]  # it is installed as a plugin of cars
    assert shop.cars.names() == ["car-builtin", "toy_installed-car"]
    assert shop.cars.failures() == []


def test_known_names_do_not_load_installed_plugins(shop: Shop) -> None:
    plugin("toy_installed", "raise AssertionError")
    install("toy-box", "car", "toy_installed")
    assert shop.cars.find("car-builtin").cls is Ball
    assert "toy_installed" not in sys.modules


def test_a_failing_plugin_leaves_nothing_and_disables_no_other(shop: Shop) -> None:
    for name, more in (("toy_a", ""), ("toy_b", "raise OSError('no licence')"), ("toy_c", "")):
        plugin(name, more)
        install(name.replace("_", "-"), "car", name)
    assert shop.cars.names() == ["car-builtin", "toy_a-car", "toy_c-car"]
    assert set(shop.dolls.entries) == {"doll-builtin", "toy_a-doll", "toy_c-doll"}
    failure = "the plugin toy-b 1.2 (toy_b) could not be loaded: OSError: no licence"
    assert shop.cars.failures() == [failure]
    assert shop.dolls.failures() == []
    with pytest.raises(RegistryError, match=r"'toy_b-car'.*; the plugin toy-b 1\.2 .*: no licence; a car of your own"):
        shop.cars.find("toy_b-car")


# Plugins named by the user


def test_modules_are_found_in_the_working_directory(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path != str(Path.cwd())])
    plugin("toy_mine")
    load_plugin("toy_mine")
    assert shop.cars.find("toy_mine-car").cls.__module__ == "toy_mine"


@pytest.mark.parametrize(
    ("more", "names", "reason"),
    [
        ("raise OSError('no licence')", {}, "OSError: no licence"),
        ("import a_missing_package", {}, "ModuleNotFoundError: No module named 'a_missing_package'"),
        ("", {"doll": "doll-builtin"}, "RegistryError: the doll name 'doll-builtin' is taken by the shop"),
    ],
)
def test_a_plugin_that_fails_is_forgotten_in_all_registries(
    more: str, names: dict[str, str], reason: str, shop: Shop
) -> None:
    plugin("toy_bad", more, **names)
    with pytest.raises(RegistryError, match=f"^the plugin toy_bad could not be loaded: {reason}"):
        load_plugin("toy_bad")
    assert shop.cars.names() == ["car-builtin"]
    assert shop.dolls.names() == ["doll-builtin"]
    assert shop.cars.origin(Ball) == __name__  # and nothing registered later is taken for the plugin's


def failing_package() -> None:
    """Its learner fails after the import of its sound model, which is not executed again."""
    Path("toy_a").mkdir()
    plugin("toy_a/model", car="a-car", doll="a-doll")
    plugin("toy_a/learner", "import toy_a.model\nimport a_missing_package", car="lost", doll="lost")


def test_a_failing_plugin_costs_no_other_what_both_import(shop: Shop) -> None:
    failing_package()
    install("toy-a", "doll", "toy_a.learner")
    install("toy-b", "car", "toy_a.model")
    assert shop.dolls.names() == ["a-doll", "doll-builtin"]
    assert shop.cars.names() == ["a-car", "car-builtin"]


def test_a_plugin_that_has_been_repaired_is_loaded(shop: Shop) -> None:
    failing_package()
    with pytest.raises(RegistryError, match="a_missing_package"):
        load_plugin("toy_a.learner")
    plugin("toy_a/learner", "import toy_a.model", car="a-second", doll="a-second")
    load_plugin("toy_a.learner")
    assert shop.cars.names() == ["a-car", "a-second", "car-builtin"]


def test_a_failing_plugin_is_forgotten_in_a_registry_that_it_was_the_first_to_import(shop: Shop) -> None:
    shop.new_registry = new_registry  # type: ignore[attr-defined]
    plugin(
        "toy_bad",
        "shop.bikes = shop.new_registry('bike')\nshop.register(shop.bikes, 'bad', Mine)\nraise OSError('no licence')",
    )
    with pytest.raises(RegistryError, match="no licence"):
        load_plugin("toy_bad")
    assert shop.bikes.names() == ["bike-builtin"]  # type: ignore[attr-defined]


@pytest.mark.usefixtures("shop")
def test_plugins_that_do_not_exist() -> None:
    with pytest.raises(RegistryError, match="plugin absent_plugin could not be loaded: there is no such module; run"):
        load_plugin("absent_plugin")
    Path("my_model.py").write_text("")
    with pytest.raises(RegistryError, match=r"there is no such module \(did you mean 'my_model'\?\)"):
        load_plugin("my_modle")


@pytest.mark.parametrize(
    ("path", "advice"), [("my_q.py", "--plugin my_q$"), ("models/my_q.py", "--plugin my_q, with models on PYTHONPATH$")]
)
def test_plugins_given_as_files(path: str, advice: str) -> None:
    with pytest.raises(RegistryError, match=f"the plugin {path} is a file; name the module: {advice}"):
        load_plugin(path)


# Trying out


def test_what_is_registered_on_trial_is_forgotten(shop: Shop) -> None:
    with shop.cars.restored():
        shop.register(shop.cars, "mine", Ball)
        assert "mine" in shop.cars.names()
    assert shop.cars.names() == ["car-builtin"]
