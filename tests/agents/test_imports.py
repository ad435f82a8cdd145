"""What is imported when: loading an agent and training stay light, and work without POSIX locks."""

import subprocess
import sys
from pathlib import Path

from tests.agents.worlds import SMALL

TRAIN = f"""
import qrl
settings = {{"model.params": {SMALL}, "learner.min_steps": 2, "learner.epochs": 0.01, "learner.batch_size": 8,
            "compile": "off"}}
qrl.train(qrl.collect("corridor", trajectories=5, max_steps=20), out=OUT, settings=settings)
"""


def imported_by(program: str, out: Path) -> set[str]:
    """The modules that a new interpreter has imported at the end of a program."""
    program = f"OUT = {str(out)!r}\n{program}\nimport sys; print(*sys.modules)"
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    return set(process.stdout.splitlines()[-1].split())


def test_loading_an_agent_is_light(trained: Path) -> None:
    modules = imported_by("import qrl; qrl.load(OUT)", trained)
    assert "qrl.agents.planning.agent" in modules
    assert not {"qrl.agents.learners.base", "gymnasium", "minigrid", "PIL", "matplotlib"} & modules


def test_training_is_light_and_needs_no_locks(tmp_path: Path) -> None:
    """Also on a system without fcntl, such as Windows."""
    program = (
        f"import sys; sys.modules['fcntl'] = None\n{TRAIN}\n"
        "after_training = set(sys.modules)\n"
        "assert qrl.evaluate(OUT).success_rate is not None\n"
        "assert 'qrl.agents.planning.rollouts' in sys.modules\n"
        "for name in set(sys.modules) - after_training: sys.modules.pop(name)"
    )
    modules = imported_by(program, tmp_path / "run")
    assert {"qrl.agents.learners.mbold", "qrl.common.locks"} <= modules
    assert not {"qrl.agents.planning.rollouts", "PIL", "matplotlib"} & modules
    assert (tmp_path / "run" / "COMPLETE").exists()
