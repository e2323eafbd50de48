"""The programs of a release for Windows on amd64, run in Wine: paths, line ends, replaced files, and the same output as here.

MESH_DIST is what krew-manifests/release wrote.
"""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest
import zipfile

from common import BIN, CLUSTERS, FLEET, ROOT, run

DIST = pathlib.Path(os.environ["MESH_DIST"])


class Windows(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.home = pathlib.Path(tempfile.mkdtemp(prefix="mesh-windows-"))
        cls.addClassCleanup(shutil.rmtree, cls.home, ignore_errors=True)
        cls.programs = cls.home / "programs"
        (archive,) = DIST.glob("kubectl-mesh_*_windows_amd64.zip")
        with zipfile.ZipFile(archive) as files:
            files.extractall(cls.programs)
        # With the compiler that the release script links with.
        cache = pathlib.Path(os.environ["MESH_TEST_CACHE"])
        (python,) = cache.glob("release-ziglang*/bin/python")
        library = cls.programs / "bcryptprimitives.dll"
        source = ROOT / "tests/delivery/wine/bcryptprimitives.c"
        run(python, "-m", "ziglang", "cc", "-target", "x86_64-windows-gnu", "-shared", "-O2", "-o", library, source, "-ladvapi32", check=True)
        cls.environment = {
            "PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(cls.home), "WINEPREFIX": str(cls.home / "prefix"), "WINEDEBUG": "-all",
        }
        cls.addClassCleanup(run, "wineserver", "--kill", env=cls.environment)
        # The first program that runs sets everything up.
        run("wine", cls.programs / "kubectl-mesh.exe", "version", env=cls.environment, check=True)

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=self.home))
        shutil.copytree(FLEET, self.folder / "fleet")

    def windows(self, program, *words, code=0, **environment):
        """What a program says, with the line ends of Linux."""
        environment = {**self.environment, **environment}
        done = run("wine", self.programs / f"{program}.exe", *words, cwd=self.folder, env=environment, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout.replace("\r\n", "\n"), done.stderr.replace("\r\n", "\n")

    def here(self, program, *words):
        return run(BIN / program, *words, cwd=self.folder, check=True).stdout

    def test_folders_have_the_same_bytes(self):
        for state in ("89 files created", "89 unchanged"):
            _, said = self.windows("kubectl-mesh", "render", "-f", "fleet", "--all", "--output-dir", "windows")
            self.assertIn(state, said)
            self.assertEqual(sorted(os.listdir(self.folder / "windows")), CLUSTERS, "nothing else is left there")
        self.here("kubectl-mesh", "render", "-f", "fleet", "--all", "--output-dir", "here")
        self.assertEqual(run("diff", "--recursive", "windows", "here", cwd=self.folder).stdout, "")

    def test_machines_read_the_same(self):
        for program, *words in (
            ("kubectl-mesh", "explain", "-o", "json"),
            ("kubectl-mesh", "render", "--cluster", "eks"),
            ("kubectl-mesh-authz", "who-can", "-o", "json"),
            ("kubectl-mesh-failover", "simulate", "--each", "-o", "json"),
            ("kubectl-mesh-expose", "get", "-o", "yaml"),
        ):
            with self.subTest(program=program, words=words):
                self.assertEqual(self.windows(program, *words, "-f", "fleet")[0], self.here(program, *words, "-f", "fleet"))

    def test_verbs_find_their_programs(self):
        expected = self.here("kubectl-mesh-expose", "get", "-f", "fleet")
        self.assertEqual(self.windows("kubectl-mesh", "expose", "get", "-f", "fleet")[0], expected)

    def test_findings_say_where(self):
        self.folder.joinpath("fleet/intents/broken.yaml").write_text("kind: [\n")
        out, said = self.windows("kubectl-mesh", "render", "-f", "fleet", "--cluster", "eks", code=1)
        self.assertEqual(out, "")
        self.assertTrue(said.startswith("error: fleet\\intents\\broken.yaml:2:1: "), said)

    def test_edits_keep_files_as_they_are(self):
        intents = self.folder / "fleet/intents"
        for path in intents.iterdir():
            path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
        before = (intents / "bank.yaml").read_bytes()
        files = sorted(os.listdir(intents))
        out, _ = self.windows("kubectl-mesh-expose", "set", "bank/user", "--clusters", "all", "--file", "fleet\\intents\\bank.yaml", "-f", "fleet")
        self.assertIn("--- a/fleet/intents/bank.yaml\n", out)
        after = (intents / "bank.yaml").read_bytes()
        self.assertEqual(after, before.replace(b"  clusters: [eks, cluster-1, cluster-2]\r\n", b"  clusters: all\r\n", 1))
        self.assertEqual(sorted(os.listdir(intents)), files)
        self.windows("kubectl-mesh-expose", "remove", "web/web", "--file", "fleet\\intents\\web.yaml", "-f", "fleet")
        self.assertEqual(sorted(os.listdir(intents)), [name for name in files if name != "web.yaml"])

    def test_a_change_is_explained(self):
        shutil.copytree(self.folder / "fleet", self.folder / "next")
        bank = self.folder / "next/intents/bank.yaml"
        bank.write_text(bank.read_text().replace("in: [eks, cluster-1]", "in: [eks]"))
        effect = json.loads(self.windows("kubectl-mesh", "plan", "fleet", "next", "-o", "json")[0])
        self.assertEqual(effect, json.loads(self.here("kubectl-mesh", "plan", "fleet", "next", "-o", "json")))
        self.assertEqual([(one["before"], one["after"]) for one in effect["access"]], [("yes", "no")])

    def test_clusters_are_reached(self):
        servers = self.folder / "servers"
        fleet = ROOT / "tests/fleet/fleet"
        self.addCleanup(run, fleet, "--dir", servers, "down")
        run(fleet, "--dir", servers, "up", "--clusters", "eks", "--no-istiod", check=True)
        words, known = ("-f", "fleet", "--cluster", "eks"), {"KUBECONFIG": str(servers / "kubeconfig")}
        missing, _ = self.windows("kubectl-mesh", "diff", *words, code=1, **known)
        self.assertIn("+++ MERGED/eks/networking.istio.io.v1.VirtualService.bank.user.mesh.bank.example", missing)
        self.windows("kubectl-mesh", "apply", *words, **known)
        self.assertEqual(self.windows("kubectl-mesh", "diff", *words, **known)[0], "")
        self.assertIn("in sync", self.windows("kubectl-mesh", "status", *words, **known)[0])


if __name__ == "__main__":
    unittest.main()
