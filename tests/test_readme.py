"""The README's examples are run as they stand, in order, in an empty folder."""

import os
import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_every_example_runs(tmp_path: Path) -> None:
    blocks = re.findall(r"^```(sh|python)\n(.*?)^```", README.read_text(), re.MULTILINE | re.DOTALL)
    assert {language for language, _ in blocks} == {"sh", "python"}
    commands = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}"}
    for language, code in blocks:
        # Warnings are errors, but for those that torch's compiler gives of itself.
        python = [sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning", "-c", code]
        call = ["bash", "-euc", code] if language == "sh" else python
        run = subprocess.run(call, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert run.returncode == 0, f"{code}\n{run.stderr}"


def test_every_linked_file_exists() -> None:
    links = re.findall(r"\]\((?!https?://)([^)#]+)\)", README.read_text())
    assert "CHANGELOG.md" in links
    for link in links:
        assert (README.parent / link).exists(), link
