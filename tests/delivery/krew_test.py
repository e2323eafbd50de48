"""The archives and the index of a release: what is in them, and what the real Krew and kubectl make of them.

MESH_DIST is the folder that krew-manifests/release wrote; its --repository is a port of this machine, which is served here.
"""

import gzip
import hashlib
import http.server
import json
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import tempfile
import threading
import unittest
import zipfile

from common import BIN, FLEET, ROOT, environment, part, run

DIST = pathlib.Path(os.environ["MESH_DIST"])
MACHINE = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
ARCHIVES = sorted([*DIST.glob("*.tar.gz"), *DIST.glob("*.zip")])
PROGRAMS = ["kubectl-mesh", "kubectl-mesh-authz", "kubectl-mesh-expose", "kubectl-mesh-failover"]


def content(archive):
    """What an archive holds: name to (mode, bytes)."""
    if archive.suffix == ".zip":
        with zipfile.ZipFile(archive) as files:
            return {entry.filename: (entry.external_attr >> 16 & 0o777, files.read(entry)) for entry in files.infolist()}
    with tarfile.open(archive) as files:
        return {entry.name: (entry.mode, files.extractfile(entry).read()) for entry in files}


class Archives(unittest.TestCase):
    def test_they_hold_what_a_release_needs(self):
        self.assertTrue(ARCHIVES)
        for archive in ARCHIVES:
            with self.subTest(archive=archive.name):
                files = content(archive)
                suffix = ".exe" if archive.suffix == ".zip" else ""
                programs = PROGRAMS if archive.name.startswith("kubectl") else ["argocd-mesh-cmp"]
                for program in programs:
                    self.assertEqual(files[program + suffix][0], 0o755)
                    bill = json.loads(files[f"{program}.cdx.json"][1])
                    self.assertEqual((bill["bomFormat"], bill["metadata"]["component"]["name"]), ("CycloneDX", program))
                    parts = {one["name"] for one in bill["components"]}
                    self.assertIn("yaml-rust2", parts)
                    self.assertEqual("kube" in parts, program.startswith("kubectl"), "what cannot be linked is not listed")
                    self.assertNotIn("assert_cmd", parts, "what only tests use")
                self.assertIn(b"Copyright 2026", files["LICENSE"][1])
                self.assertNotIn(b"[name of copyright owner]", files["LICENSE"][1])
                if archive.name.startswith("kubectl"):
                    self.assertLessEqual({"README.md", "completion.bash", "completion.zsh", "completion.fish", "completion.ps1"}, set(files))

    def test_nothing_of_the_machine_is_in_them(self):
        """Times, owners and folders differ between two machines; without them the same commit gives the same bytes."""
        home = str(pathlib.Path.home()).encode()
        for archive in ARCHIVES:
            with self.subTest(archive=archive.name):
                if archive.suffix == ".zip":
                    with zipfile.ZipFile(archive) as files:
                        self.assertEqual({entry.date_time for entry in files.infolist()}, {(1980, 1, 1, 0, 0, 0)})
                else:
                    self.assertEqual(archive.read_bytes()[4:8], bytes(4), "gzip's own time")
                    with tarfile.open(archive) as files:
                        self.assertEqual({(one.mtime, one.uid, one.gid, one.uname, one.isfile()) for one in files}, {(0, 0, 0, "", True)})
                for name, (_, data) in content(archive).items():
                    self.assertNotIn(str(ROOT).encode(), data, name)
                    self.assertNotIn(home + b"/", data, name)

    def test_checksums_cover_everything(self):
        listed = dict(reversed(line.split("  ")) for line in (DIST / "checksums.txt").read_text().splitlines())
        files = {path.name for path in DIST.iterdir() if path.is_file()} - {"checksums.txt"}
        self.assertEqual(set(listed), files)
        for name, digest in listed.items():
            self.assertEqual(hashlib.sha256((DIST / name).read_bytes()).hexdigest(), digest)


class Krew(unittest.TestCase):
    """Krew itself installs from the index, which is a Git repository, and from the addresses in its manifests."""

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="mesh-krew-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        (cls.folder / "bin").mkdir()
        (cls.folder / "bin/kubectl-krew").symlink_to(part("krew"))
        cls.index = cls.folder / "index"
        shutil.copytree(DIST / "index", cls.index)
        git = ["git", "-C", cls.index, "-c", "user.name=t", "-c", "user.email=t@example.com"]
        for command in (["init", "--quiet", "--initial-branch=master"], ["add", "--all"], ["commit", "--quiet", "--message=release"]):
            subprocess.run([*git, *command], check=True)

        class Handler(http.server.SimpleHTTPRequestHandler):
            def translate_path(self, path):
                return str(DIST / path.rsplit("/", 1)[-1])

            def log_message(self, *_):
                pass

        port = int(re.search(r"uri: http://127\.0\.0\.1:(\d+)/", (DIST / "index/plugins/mesh.yaml").read_text())[1])
        cls.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        cls.addClassCleanup(cls.server.server_close)
        cls.addClassCleanup(cls.server.shutdown)
        threading.Thread(target=cls.server.serve_forever, daemon=True).start()

    def kubectl(self, root, *arguments, **more):
        """kubectl with Krew, and with nothing else of ours on PATH than what Krew has linked."""
        path = [str(root / "bin"), str(self.folder / "bin"), *environment()["PATH"].split(os.pathsep)[1:]]
        self.assertNotIn(str(BIN), path)
        return run(
            "kubectl", *arguments, cwd=self.folder,
            env=environment(PATH=os.pathsep.join(path), KREW_ROOT=root, HOME=self.folder, KREW_NO_UPGRADE_CHECK="1",
                            KREW_DEFAULT_INDEX_URI=str(self.index), **more),
        )

    def done(self, *arguments, **more):
        result = self.kubectl(*arguments, **more)
        self.assertEqual(result.returncode, 0, f"{arguments}: {result.stderr}")
        return result.stdout

    def installed(self, name, *plugins):
        root = self.folder / name
        self.done(root, "krew", "index", "add", "mesh", str(self.index))
        self.done(root, "krew", "install", *(f"mesh/{plugin}" for plugin in plugins))
        return root

    def test_one_plugin_brings_all_verbs(self):
        root = self.installed("one", "mesh")
        version = re.search(r"version: v(\S+)", (self.index / "plugins/mesh.yaml").read_text())[1]
        self.assertIn(version, self.done(root, "mesh", "version"))
        self.assertIn("bank/account", self.done(root, "mesh", "explain", "-f", FLEET))
        for verb in ("expose", "failover", "authz"):
            self.assertIn("Usage:", self.done(root, "mesh", verb, "--help"))
        self.assertIn("bank/user", self.done(root, "mesh", "authz", "who-can", "-f", FLEET))
        self.done(root, "krew", "uninstall", "mesh")
        self.assertNotEqual(self.kubectl(root, "mesh", "version").returncode, 0)

    def test_single_plugins_have_krews_spelling(self):
        root = self.installed("single", "mesh-expose", "mesh-failover", "mesh-authz")
        for name in ("mesh-expose", "mesh-failover", "mesh-authz"):
            self.assertIn("Usage:", self.done(root, name, "--help"))
        self.assertIn("bank/user", self.done(root, "mesh-authz", "who-can", "-f", FLEET))
        self.assertNotEqual(self.kubectl(root, "mesh", "authz", "--help").returncode, 0, "the documentation says so")

    def test_kubectl_completes_with_the_script_of_the_archive(self):
        root = self.installed("completed", "mesh")
        script = next((root / "store/mesh").rglob("kubectl_complete-mesh"))
        (root / "bin/kubectl_complete-mesh").symlink_to(script)
        self.assertIn("render", self.done(root, "__complete", "mesh", "rend"))

    def test_every_platform_is_unpacked_as_its_manifest_says(self):
        """Krew for another platform downloads, compares, unpacks and links; only running is left out."""
        text = (self.index / "plugins/mesh.yaml").read_text()
        platforms = re.findall(r"os: (\w+), arch: (\w+)", text)
        self.assertIn(("linux", MACHINE), platforms)
        for system, machine in platforms:
            with self.subTest(platform=f"{system}/{machine}"):
                root = self.folder / f"{system}-{machine}"
                other = {"KREW_OS": system, "KREW_ARCH": machine}
                self.done(root, "krew", "index", "add", "mesh", str(self.index), **other)
                self.done(root, "krew", "install", "mesh/mesh", "mesh/mesh-authz", **other)
                suffix = ".exe" if system == "windows" else ""
                self.assertTrue((root / f"bin/kubectl-mesh{suffix}").exists())
        

    def test_manifests_keep_the_rules_of_krews_index(self):
        for path in sorted((self.index / "plugins").glob("*.yaml")):
            with self.subTest(plugin=path.stem):
                done = run(part("validate-krew-manifest"), "-manifest", path, "-skip-install")
                self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
