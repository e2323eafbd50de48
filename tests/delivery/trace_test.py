"""What the render step does to the machine, under a system-call trace: it reads, and writes to stdout and stderr."""

import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from common import BIN, CLUSTERS, FLEET

# Whatever could reach another machine, start a program, or change a file.
NETWORK = ["socket", "socketpair", "connect", "bind", "listen", "sendto", "sendmsg"]
PROCESSES = ["fork", "vfork", "clone", "clone3", "execve", "execveat"]
CHANGES = ["creat", "rename", "renameat", "renameat2", "unlink", "unlinkat", "link", "linkat", "symlink", "symlinkat", "mkdir", "mkdirat",
           "rmdir", "truncate", "ftruncate", "chmod", "fchmod", "fchmodat", "chown", "fchown", "lchown", "fchownat", "mknod", "mknodat"]
OPEN = ["open", "openat", "openat2"]


class Trace(unittest.TestCase):
    def trace(self, folder, *arguments, **environment):
        """The system calls of the plugin, without the one that starts it."""
        with tempfile.NamedTemporaryFile() as log:
            done = subprocess.run(
                ["strace", "-f", "-qq", "-e", f"trace=?{',?'.join(NETWORK + PROCESSES + CHANGES + OPEN)}", "-o", log.name,
                 BIN / "argocd-mesh-cmp", *arguments],
                cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )
            calls = pathlib.Path(log.name).read_text().splitlines()
        first, *rest = calls
        self.assertIn("execve(", first)
        return done, rest

    def harmless(self, folder, *arguments, code=0, **environment):
        done, calls = self.trace(folder, *arguments, **environment)
        self.assertEqual(done.returncode, code, done.stderr)
        for call in calls:
            name = re.match(r"\d+\s+(\w+)\(", call)
            if not name or name[1] not in OPEN:
                self.fail(call)
            self.assertNotRegex(call, r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|O_APPEND", "opened for writing")
        return done, calls

    def test_the_trace_sees_what_it_looks_for(self):
        with tempfile.NamedTemporaryFile() as log:
            subprocess.run(["strace", "-f", "-qq", "-e", "trace=?openat,?socket", "-o", log.name, "bash", "-c", "exec 3>/dev/null; : >/dev/tcp/127.0.0.1/1"],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            text = pathlib.Path(log.name).read_text()
        self.assertIn("O_WRONLY", text)
        self.assertIn("socket(", text)

    def test_rendering_reads_only(self):
        for cluster in CLUSTERS:
            with self.subTest(cluster=cluster):
                done, calls = self.harmless(FLEET, "generate", ARGOCD_ENV_CLUSTER=cluster)
                self.assertIn("kind: ", done.stdout)
                self.assertTrue(any("bank.yaml" in call for call in calls), "the trace saw the documents being opened")

    def test_refusing_reads_only(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(FLEET, f"{folder}/fleet")
            with open(f"{folder}/fleet/broken.yaml", "w") as out:
                out.write("apiVersion: meshintent.dev/v1alpha1\nkind: [")
            self.harmless(f"{folder}/fleet", "generate", code=1, ARGOCD_ENV_CLUSTER="eks")
            self.harmless(folder, "generate", code=1, ARGOCD_ENV_CLUSTER="../../etc/passwd")
            self.harmless(folder, "generate", code=1, HTTPS_PROXY="http://192.0.2.1:1")

    def test_the_form_of_the_user_interface_reads_only(self):
        self.harmless(FLEET, "parameters")


if __name__ == "__main__":
    unittest.main()
