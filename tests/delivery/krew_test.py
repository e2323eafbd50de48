"""Archives unpacked and run, and kubectl finding the plugins where Krew puts them."""

import gzip
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import tempfile
import unittest

from common import FLEET, ROOT, environment, run

MACHINE = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]


class Krew(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="mesh-krew-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.dist = cls.folder / "dist"
        # What is published for this platform; the release script is the same for all. Linking as for a release takes minutes
        # for each program and changes nothing of what is tested here.
        fast = {"CARGO_PROFILE_RELEASE_LTO": "off", "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "16"}
        subprocess.run([ROOT / "krew-manifests/release", cls.dist, "--platform", f"linux/{MACHINE}"], check=True, env={**os.environ, **fast})

    def manifests(self):
        return {path.stem: path.read_text() for path in sorted((self.dist / "index/plugins").glob("*.yaml"))}

    def install(self, name, text, root):
        """What `krew install` does: unpack the files into a store, link the program with `-` as `_`."""
        store = root / "store" / name
        store.mkdir(parents=True)
        archive = self.dist / re.search(r"uri: \S*/(\S+)", text)[1]
        self.assertEqual(hashlib.sha256(archive.read_bytes()).hexdigest(), re.search(r"sha256: (\w+)", text)[1])
        wanted = re.findall(r"from: ([\w.-]+)", text)
        with tarfile.open(archive) as files:
            for member in files.getmembers():
                self.assertTrue(member.isfile() and "/" not in member.name and member.mtime == 0, member.name)
                if not wanted or member.name in wanted:
                    files.extract(member, store, filter="data")
        program = store / re.search(r"bin: (\S+)", text)[1]
        self.assertTrue((store / "LICENSE").exists(), "Krew takes no plugin without a licence")
        self.assertTrue(os.access(program, os.X_OK))
        (root / "bin").mkdir(exist_ok=True)
        (root / "bin" / ("kubectl-" + name.replace("-", "_"))).symlink_to(program)

    def kubectl(self, root, *arguments):
        # Only what Krew has linked is on PATH, not the programs that were built for other tests.
        path = os.pathsep.join([str(root / "bin"), *environment()["PATH"].split(os.pathsep)[1:]])
        return run("kubectl", *arguments, env=environment(PATH=path), cwd=root)

    def test_all_verbs_are_found_after_installing_the_one_plugin(self):
        root = self.folder / "one"
        self.install("mesh", self.manifests()["mesh"], root)
        version = self.kubectl(root, "mesh", "version")
        self.assertEqual(version.returncode, 0, version.stderr)
        self.assertIn(re.search(r"version: v(\S+)", self.manifests()["mesh"])[1], version.stdout)
        shown = self.kubectl(root, "mesh", "explain", "-f", FLEET)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn("bank/account", shown.stdout)
        for program in sorted((root / "store/mesh").glob("kubectl-mesh-*")):
            with self.subTest(program=program.name):
                verb = program.name.removeprefix("kubectl-mesh-")
                done = self.kubectl(root, "mesh", verb, "--help")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("Usage:", done.stdout)

    def test_kubectl_completes_with_the_script_of_the_archive(self):
        root = self.folder / "completed"
        self.install("mesh", self.manifests()["mesh"], root)
        (root / "bin/kubectl_complete-mesh").symlink_to(root / "store/mesh/kubectl_complete-mesh")
        done = self.kubectl(root, "__complete", "mesh", "rend")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("render", done.stdout)

    def test_single_plugins_are_found_under_krews_spelling(self):
        for name, text in self.manifests().items():
            if name != "mesh":
                with self.subTest(plugin=name):
                    root = self.folder / name
                    self.install(name, text, root)
                    done = self.kubectl(root, name, "--help")
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertIn("Usage:", done.stdout)

    def test_manifests_keep_krews_rules(self):
        for name, text in self.manifests().items():
            with self.subTest(plugin=name):
                self.assertIn(f"  name: {name}\n", text)
                self.assertLessEqual(len(re.search(r"shortDescription: (.*)", text)[1]), 50)
                self.assertRegex(text, r"version: v\d+\.\d+\.\d+\n")
                self.assertRegex(name, r"^[\w-]+$")

    def test_programs_are_static_and_name_no_folder_of_this_machine(self):
        with tarfile.open(next(self.dist.glob("argocd-mesh-cmp_*.tar.gz"))) as files:
            program = files.extractfile("argocd-mesh-cmp").read()
        self.assertNotIn(b"/ld-linux", program)
        self.assertNotIn(b"/ld-musl", program)
        self.assertNotIn(str(ROOT).encode(), program)
        self.assertNotIn(str(pathlib.Path.home()).encode() + b"/.cargo", program)

    def test_checksums_cover_everything(self):
        listed = dict(reversed(line.split("  ")) for line in (self.dist / "checksums.txt").read_text().splitlines())
        files = {path.name for path in self.dist.iterdir() if path.is_file()} - {"checksums.txt"}
        self.assertEqual(set(listed), files)
        for name, digest in listed.items():
            self.assertEqual(hashlib.sha256((self.dist / name).read_bytes()).hexdigest(), digest)

    def test_archives_carry_no_time(self):
        for archive in self.dist.glob("*.tar.gz"):
            self.assertEqual(archive.read_bytes()[4:8], bytes(4), "gzip's own time stamp")
            gzip.decompress(archive.read_bytes())


if __name__ == "__main__":
    unittest.main()
