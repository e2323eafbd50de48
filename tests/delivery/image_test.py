"""The image of the Argo CD plugin: built from its Containerfile, and running as the repo-server's sidecar does.

Buildah builds and runs it: it needs no daemon. MESH_DIST is the folder that krew-manifests/release wrote.
"""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import stat
import subprocess
import tempfile
import time
import unittest

from common import BIN, ROOT, part

DIST = pathlib.Path(os.environ["MESH_DIST"])
MACHINE = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
FILES = {"LICENSE": 0o444, "usr/local/bin/argocd-mesh-cmp": 0o555, "home/argocd/cmp-server/config/plugin.yaml": 0o444}


class Image(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="mesh-image-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        # What the Containerfile takes from the repository, with the release script's folder inside.
        context = cls.folder / "context"
        for name in ("LICENSE", "argocd-cmp/plugin.yaml", "argocd-cmp/Containerfile"):
            (context / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, context / name)
        shutil.copytree(DIST / "image", context / "dist/image")
        for architecture in sorted(path.name for path in (DIST / "image").iterdir()):
            cls.buildah("bud", "--isolation=chroot", f"--arch={architecture}", f"--build-arg=TARGETARCH={architecture}",
                        "--file=argocd-cmp/Containerfile", f"--tag=mesh-cmp:{architecture}", ".", cwd=context)

    @classmethod
    def buildah(cls, *arguments, **options):
        done = subprocess.run(cls.command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
        if done.returncode:
            raise AssertionError(f"buildah {' '.join(map(str, arguments))}: {done.stderr}")
        return done.stdout.strip()

    @classmethod
    def command(cls, *arguments):
        return ["buildah", "--storage-driver=vfs", f"--root={cls.folder}/storage", f"--runroot={cls.folder}/run", *map(str, arguments)]

    def test_it_holds_the_program_and_nothing_else(self):
        for architecture in sorted(path.name for path in (DIST / "image").iterdir()):
            with self.subTest(architecture=architecture):
                config = json.loads(self.buildah("inspect", "--type=image", f"mesh-cmp:{architecture}"))["OCIv1"]
                self.assertEqual(config["architecture"], architecture)
                self.assertEqual(config["config"]["User"], "999:999")
                self.assertEqual(config["config"]["Entrypoint"], ["/var/run/argocd/argocd-cmp-server"])
                root = pathlib.Path(self.buildah("mount", self.buildah("from", f"mesh-cmp:{architecture}")))
                found = {}
                for path in root.rglob("*"):
                    status = path.lstat()
                    self.assertEqual((status.st_uid, status.st_mode & 0o022), (0, 0), f"{path}: the plugin could change it")
                    if stat.S_ISREG(status.st_mode):
                        found[str(path.relative_to(root))] = stat.S_IMODE(status.st_mode)
                self.assertEqual(found, FILES)

    def test_argo_cds_server_renders_with_it(self):
        """The sidecar: the user of the image, no capabilities, Argo CD's server in the shared volume."""
        container = self.buildah("from", f"mesh-cmp:{MACHINE}")
        shared, sockets, scratch = (pathlib.Path(tempfile.mkdtemp(prefix="mc", dir="/tmp")) for _ in range(3))
        for folder in (shared, sockets, scratch):
            self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
            folder.chmod(0o755)
        for folder in (sockets, scratch):
            os.chown(folder, 999, 999)
        shutil.copy(part("argocd-cmp-server"), shared / "argocd-cmp-server")
        log = self.folder / "server.log"
        server = subprocess.Popen(
            self.command("run", "--isolation=chroot", "--cap-drop=all", f"--volume={shared}:/var/run/argocd:ro",
                         f"--volume={sockets}:/home/argocd/cmp-server/plugins", f"--volume={scratch}:/tmp", container,
                         "--", "/var/run/argocd/argocd-cmp-server", "--loglevel", "info"),
            stdin=subprocess.DEVNULL, stdout=log.open("w"), stderr=subprocess.STDOUT, start_new_session=True,
        )
        self.addCleanup(self.end, server)
        for _ in range(200):
            if list(sockets.glob("mesh-*.sock")):
                break
            self.assertIsNone(server.poll(), f"the server has ended: {log.read_text()}")
            time.sleep(0.1)
        socket = next(sockets.glob("mesh-*.sock"))
        self.assertEqual(socket.stat().st_uid, 999)
        done = subprocess.run(
            ["go", "test", "-count=1", "-run", "TestEveryClusterIsRendered|TestWhatIsWrongIsRefused|TestALargeRepository", "./..."],
            cwd=ROOT / "tests/argocd", env={**os.environ, "MESH_BIN_DIR": str(BIN), "MESH_CMP_SOCKETS": str(sockets), "CGO_ENABLED": "0"},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        self.assertEqual(done.returncode, 0, done.stdout)

    @staticmethod
    def end(server):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)
        server.wait()


if __name__ == "__main__":
    unittest.main()
