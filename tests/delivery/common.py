"""What the tests of this folder share: where things are, and the real parts."""

import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FLEET = ROOT / "tests/golden/example/fleet"
CLUSTERS = ["canary-1", "cluster-1", "cluster-2", "eks", "wine"]
UPDATE = bool(os.environ.get("UPDATE_GOLDEN"))
# Without it nothing here means anything, so its absence is an error and not a reason to skip.
BIN = pathlib.Path(os.environ["MESH_BIN_DIR"])


def part(name):
    """The path of a real program, built if it is missing (see tests/parts)."""
    return pathlib.Path(subprocess.run([ROOT / "tests/parts/build", name], check=True, stdout=subprocess.PIPE, text=True).stdout.strip())


def module(name, version):
    """The folder of a published Go module."""
    text = subprocess.run(
        ["go", "mod", "download", "-json", f"{name}@{version}"], cwd=ROOT / "tests/parts/etcd", check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    return pathlib.Path(next(line.split('"')[3] for line in text.splitlines() if '"Dir":' in line))


def run(*command, **options):
    return subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def environment(**more):
    """An environment that does not depend on whose machine this is."""
    path = [str(BIN), str(part("kubectl").parent), "/usr/local/bin", "/usr/bin", "/bin"]
    return {"PATH": os.pathsep.join(path), "HOME": "/nonexistent", "LANG": "C.UTF-8", "NO_COLOR": "1", **more}
