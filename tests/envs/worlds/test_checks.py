import pytest

from qrl import list_worlds, register_world
from qrl.common.errors import ContractError
from qrl.testing import check_world
from tests.envs.worlds.toys import RingSettings, ring

pytestmark = pytest.mark.usefixtures("restored_registry")


@pytest.mark.parametrize("name", list_worlds())
def test_every_registered_world_keeps_the_contract(name: str) -> None:
    check_world(name)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("random", r"\(It is built .* the same world\): a second world with the same settings is another one"),
        ("unreachable", r"\(Every start reaches a goal\): no goal can be reached from the start 1"),
        ("raises", "cannot be built: KeyError"),
        ("other type", "returns a RingSettings, not a World"),
    ],
)
def test_faults_are_named(fault: str, message: str) -> None:
    register_world("ring", RingSettings)(ring)
    check_world("ring", states=3)
    with pytest.raises(ContractError, match=f"^world ring breaks the contract .*{message}"):
        check_world("ring", fault=fault)
