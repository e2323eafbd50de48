"""The programs of a release for every platform: what they are, what they load, and those that run here.

Linux programs for another processor run in an emulator (qemu-user); windows_test.py runs what is for Windows on amd64. Nothing
runs what is for macOS. MESH_DIST is what krew-manifests/release wrote for all platforms.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import tempfile
import unittest
import zipfile

from common import BIN, FLEET, ROOT, run

DIST = pathlib.Path(os.environ["MESH_DIST"])
PLATFORMS = {
    "linux_amd64": ("elf", "EM_X86_64"),
    "linux_arm64": ("elf", "EM_AARCH64"),
    "darwin_amd64": ("macho", "CpuAmd64"),
    "darwin_arm64": ("macho", "CpuArm64"),
    "windows_amd64": ("pe", "amd64"),
    "windows_arm64": ("pe", "arm64"),
}
# What every macOS and every Windows has.
SYSTEM = {
    "elf": r"nothing",
    "macho": r"/usr/lib/(libSystem\.B|libiconv\.2|libcharset\.1)\.dylib|/System/Library/Frameworks/(Security|CoreFoundation)\.framework/.*",
    "pe": r"api-ms-win-(core|crt)-.*\.dll|(kernel32|ntdll|advapi32|bcrypt|bcryptprimitives|crypt32|ncrypt|secur32|ws2_32|userenv|msvcrt|ucrtbase)\.dll",
}
# How programs of a platform run on this machine.
RUNNERS = {"x86_64": {"linux_amd64": [], "linux_arm64": ["qemu-aarch64"]}}[os.uname().machine]


class Platforms(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="mesh-platforms-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        for archive in [*DIST.glob("kubectl-mesh_*.tar.gz"), *DIST.glob("kubectl-mesh_*.zip")]:
            platform = "_".join(re.search(r"_(\w+)_(\w+)\.", archive.name).groups())
            with tarfile.open(archive) if archive.suffix == ".gz" else zipfile.ZipFile(archive) as files:
                files.extractall(cls.folder / platform, **({"filter": "data"} if archive.suffix == ".gz" else {}))

    def test_all_are_there(self):
        self.assertEqual({path.name for path in self.folder.iterdir()}, set(PLATFORMS))

    def test_they_are_what_their_platform_runs(self):
        for platform, (form, machine) in PLATFORMS.items():
            suffix = ".exe" if form == "pe" else ""
            programs = sorted(self.folder.joinpath(platform).glob(f"kubectl-mesh*{suffix}"))
            programs = [path for path in programs if path.suffix in ("", ".exe")]
            self.assertEqual(len(programs), 4)
            told = run("go", "run", "./formats", *programs, cwd=ROOT / "tests/delivery", check=True).stdout
            for path, line in zip(programs, told.splitlines(), strict=True):
                with self.subTest(platform=platform, program=path.name):
                    found = json.loads(line)
                    self.assertEqual((found["format"], found["machine"]), (form, machine))
                    for library in found["loads"] or []:
                        self.assertRegex(library, rf"\A({SYSTEM[form]})\Z")
                    if form == "macho":
                        self.assertEqual(found["detail"], "from 11.0, signed" if "arm64" in platform else found["detail"])
                    if form == "pe":
                        self.assertEqual(found["detail"], "subsystem 3", "a program for consoles")

    def test_they_render_what_this_machines_program_renders(self):
        expected = run(BIN / "kubectl-mesh", "render", "-f", FLEET, "--cluster", "eks", check=True).stdout
        for platform, runner in RUNNERS.items():
            with self.subTest(platform=platform):
                done = subprocess.run([*runner, self.folder / platform / "kubectl-mesh", "render", "-f", ".", "--cluster", "eks"],
                                      cwd=FLEET, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(done.stdout.decode(), expected)


if __name__ == "__main__":
    unittest.main()
