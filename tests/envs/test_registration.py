"""The environment is registered whichever of qrl.envs and Gymnasium is imported first."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "imports",
    [
        "import qrl.envs.dataset; assert 'gymnasium' not in sys.modules; import gymnasium",
        "import importlib.util, qrl.envs; importlib.util.find_spec('gymnasium'); import gymnasium",
        "import gymnasium, qrl.envs",
        "import gymnasium",
    ],
)
def test_either_order_of_imports(imports: str) -> None:
    program = f"import sys; {imports}\nprint(gymnasium.make('qrl.envs:qrl/OneWayDoors-v0', layout='corridor').spec.id)"
    run = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False)
    assert run.stdout == "qrl/OneWayDoors-v0\n", run.stderr


def test_a_missing_gymnasium_is_not_hidden() -> None:
    program = (
        "import sys, qrl.envs\n"
        "sys.path[:] = [path for path in sys.path if 'site-packages' not in path]\n"
        "try:\n    import gymnasium\nexcept ModuleNotFoundError as error:\n    print(error.name)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.stdout == "gymnasium\n", run.stderr
