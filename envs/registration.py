"""Registers the environment with Gymnasium as soon as both are imported, in either order.

`gym.make("qrl.envs:qrl/OneWayDoors-v0")` imports this package. Training and inference import it too, for their
data, but never need Gymnasium.
"""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

ENV_ID = "qrl/OneWayDoors-v0"


def register() -> None:
    import gymnasium

    if ENV_ID not in gymnasium.registry:
        # Without wrappers: they hide the goal functions, which other libraries look for on what gym.make returns.
        gymnasium.register(
            id=ENV_ID,
            entry_point="qrl.envs.one_way_doors:OneWayDoorsEnv",
            order_enforce=False,
            disable_env_checker=True,
        )


def register_when_imported() -> None:
    """Register now if Gymnasium is imported, otherwise when it is."""
    if "gymnasium" in sys.modules:
        register()
    else:
        sys.meta_path.insert(0, _AfterGymnasium())


class _AfterGymnasium(MetaPathFinder):
    """Finds Gymnasium as Python would, and registers once its module has been executed.

    It stays: Gymnasium may be looked up without being imported, and its import may fail the first time.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != "gymnasium":
            return None
        spec = PathFinder.find_spec(fullname, path)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def execute_and_register(module: ModuleType) -> None:
            execute(module)
            register()

        spec.loader.exec_module = execute_and_register  # type: ignore[method-assign]
        return spec
