"""What must hold before a release: builds, installs and runs the last commit, and prints a checklist.

Everything happens in a temporary folder; the clean environment gets its packages from pip's index.
"""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import yaml
from packaging.metadata import Metadata

import qrl
from qrl.__main__ import commands

ROOT = Path(__file__).parents[1]
PARTS = ("agents", "configs", "envs", "scripts")  # linked into qrl/
SDIST = ["python", "-c", "from setuptools.build_meta import build_sdist; build_sdist('dist')"]
WHEEL = ["python", "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--quiet", "-w", "dist", "."]
DEMO = ("report.html", "explorer.html", "mrn-fixed/COMPLETE", "unconstrained/COMPLETE")


class Release:
    """The steps, in order; each returns what it found, or raises."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.source, self.unpacked, self.bin = folder / "source", folder / "sdist", folder / "venv" / "bin"
        self.work = folder / "work"

    @property
    def steps(self) -> dict[str, Callable[[], str]]:
        return {
            "the version is the same everywhere": self.version,
            "sdist builds, and a wheel from it": self.build,
            "metadata is valid": self.metadata,
            "wheel contains qrl/ and nothing else": self.contents,
            "wheel installs in a clean environment": self.install,
            "every command starts": self.start,
            "the demo runs": self.demo,
        }

    def version(self) -> str:
        citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
        assert citation["version"] == qrl.__version__, f"CITATION.cff has version {citation['version']}"
        section = re.search(r"^## (\S+)(.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
        assert section, "CHANGELOG.md has no sections"
        assert section[1] == qrl.__version__, f"the first section of CHANGELOG.md is {section[1]}"
        missing = ["the date in CHANGELOG.md"] if "unreleased" in section[2] else []
        missing += [] if "date-released" in citation else ["date-released in CITATION.cff"]
        return qrl.__version__ + (f"; still to be written: {', '.join(missing)}" if missing else "")

    def build(self) -> str:
        self.source.mkdir()
        archive = self.folder / "source.tar"
        self._run("git", "archive", "--output", str(archive), "HEAD", cwd=ROOT)
        self._run("tar", "-xf", str(archive), cwd=self.source)  # keeps links
        self._run(*SDIST, cwd=self.source)
        (sdist,) = (self.source / "dist").iterdir()
        with tarfile.open(sdist) as files:
            links = [file.name for file in files if file.issym() or file.islnk()]
            assert not links, f"the sdist has links: {links}"
            files.extractall(self.unpacked, filter="data")
        self._run(*WHEEL, cwd=self._sdist_root)
        return f"{sdist.name}, {self.wheel.name} ({self.wheel.stat().st_size / 1e6:.1f} MB)"

    def metadata(self) -> str:
        with zipfile.ZipFile(self.wheel) as files:
            (name,) = (name for name in files.namelist() if name.endswith(".dist-info/METADATA"))
            metadata = Metadata.from_email(files.read(name), validate=True)
        assert (metadata.name, str(metadata.version)) == ("quasimetric", qrl.__version__)
        assert metadata.description_content_type == "text/markdown"
        assert metadata.description
        assert metadata.requires_python is not None
        assert (self._sdist_root / "PKG-INFO").is_file()
        return f"{metadata.name} {metadata.version}, extras {', '.join(metadata.provides_extra or [])}"

    def contents(self) -> str:
        with zipfile.ZipFile(self.wheel) as files:
            names = {name for name in files.namelist() if ".dist-info/" not in name}
        tracked = [Path(name) for name in self._run("git", "ls-files", "qrl", *PARTS, cwd=ROOT).splitlines()]
        own = {str(path) if path.parts[0] == "qrl" else f"qrl/{path}" for path in tracked}
        own -= {f"qrl/{part}" for part in PARTS}  # the links themselves
        assert names == own, f"missing: {sorted(own - names)}; superfluous: {sorted(names - own)}"
        return f"{len(names)} files"

    def install(self) -> str:
        self._run(sys.executable, "-m", "venv", str(self.bin.parent), cwd=self.folder)
        pip = [str(self.bin / "python"), "-m", "pip"]
        self._run(*pip, "install", "--quiet", "-c", str(ROOT / "constraints.txt"), str(self.wheel), cwd=self.folder)
        self._run(*pip, "check", cwd=self.folder)
        return f"{len(self._run(*pip, 'list', '--format=freeze', cwd=self.folder).splitlines())} packages"

    def start(self) -> str:
        self.work.mkdir()
        for name in commands():
            version = self._run(str(self.bin / name), "--version", cwd=self.work)
            assert version == f"{name} (quasimetric {qrl.__version__})\n", version
        listing = self._run(str(self.bin / "python"), "-m", "qrl", cwd=self.work)
        assert all(name in listing for name in commands())
        return f"{len(commands())} commands"

    def demo(self) -> str:
        makefile = str(ROOT / "Makefile")
        printed = self._run("make", "-f", makefile, "demo", f"BIN={self.bin}", "INSTALLED=", cwd=self.work)
        missing = [name for name in DEMO if not (self.work / "runs" / "demo" / name).is_file()]
        assert not missing, f"not written: {missing}"
        rates = next(line.split()[2:4] for line in printed.splitlines() if line.startswith("success rate"))
        return f"success rates {', '.join(rates)}"

    @property
    def _sdist_root(self) -> Path:
        (root,) = self.unpacked.iterdir()
        return root

    @property
    def wheel(self) -> Path:
        (wheel,) = (self._sdist_root / "dist").glob("*.whl")
        return wheel

    def _run(self, *command: str, cwd: Path) -> str:
        """The output of a program; `python` is this one, and nothing of this checkout is on its path."""
        program = [sys.executable if command[0] == "python" else command[0], *command[1:]]
        environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "MAKEFLAGS")}
        run = subprocess.run(program, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
        assert run.returncode == 0, f"{' '.join(command)}\n{run.stdout[-2000:]}\n{run.stderr[-2000:]}"
        return run.stdout


def main() -> int:
    """Print the checklist; 1 where a step failed, which ends it."""
    folder = Path(tempfile.mkdtemp(prefix="release-"))
    begin = time.monotonic()
    try:
        for title, step in Release(folder).steps.items():
            start = time.monotonic()
            try:
                found = step()
            except AssertionError as error:
                print(f"[failed] {title}: {error}", flush=True)
                return 1
            print(f"[ok] {title}: {found} ({time.monotonic() - start:.0f} s)", flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"all passed in {(time.monotonic() - begin) / 60:.1f} minutes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
