"""What a user gets who installs a wheel, and which part may import which."""

import ast
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_the_wheel_holds_everything_and_nothing_else(tmp_path: Path) -> None:
    names = ("qrl", "envs", "agents", "configs", "scripts", "setup.cfg", "pyproject.toml", "README.md", "LICENSE")
    for name in names:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)
    build = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--quiet", "-w", "out", "."]
    run = subprocess.run(build, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    (wheel,) = (tmp_path / "out").iterdir()
    files = set(zipfile.ZipFile(wheel).namelist())
    assert {name.split("/")[0] for name in files if ".dist-info" not in name} == {"qrl", "envs", "agents"}
    expected = set()
    for folder, inside in (("qrl", "qrl"), ("envs", "envs"), ("agents", "agents"), ("configs", "qrl/configs")):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in {".py", ".txt", ".yaml", ".typed"}:
                expected.add(f"{inside}/{path.relative_to(ROOT / folder)}")
    expected |= {f"qrl/scripts/{path.name}" for path in (ROOT / "scripts").glob("*.py")}
    assert {name for name in files if ".dist-info" not in name} == expected


MAY_IMPORT = {
    "qrl": {"qrl"},
    "envs": {"envs", "qrl.common"},
    "agents": {"agents", "envs", "qrl"},
}


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_imports_go_one_way(package: str) -> None:
    own = {"qrl", "envs", "agents", "scripts", "tests", "benchmarks"}
    for path in (ROOT / package).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            for name in names:
                allowed = any(name == part or name.startswith(f"{part}.") for part in MAY_IMPORT[package])
                assert name.split(".")[0] not in own or allowed, f"{path}: {name}"
                assert package != "envs" or name.split(".")[0] != "torch", path


HEAVY = ("torch", "minigrid", "matplotlib", "scipy")


@pytest.mark.parametrize(
    ("package", "heavy"),
    [
        ("qrl", HEAVY),
        ("envs", HEAVY),
        ("agents.training", ("scipy.stats", "torch._dynamo")),
        ("agents.graph_training", ("scipy.stats", "torch._dynamo")),
    ],
)
def test_importing_a_package_is_light(package: str, heavy: tuple[str, ...]) -> None:
    program = f"import sys, {package}; print([name for name in {heavy} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"
