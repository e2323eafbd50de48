"""The commands of README.md and of all documentation do what the pages say.

Every block marked `console` is run, in order, in a folder that looks like the repository's root. Lines that begin with `$`
are commands, the others are what they print; `…` as a line of its own stands for any number of lines. A command that is
meant to fail says so: `# exit 1`. UPDATE_GOLDEN=1 writes what was printed, except where a block has a `…`.
"""

import os
import re
import subprocess
import tempfile
import unittest

from common import ROOT, UPDATE, environment

PAGES = sorted(
    [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "argocd-cmp/README.md", "krew-manifests/README.md")]
    + [page for page in (ROOT / "docs").rglob("*.md") if "reference" not in page.parts]
)
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.M | re.S)


class Documentation(unittest.TestCase):
    maxDiff = None

    def test_there_is_something_to_run(self):
        self.assertGreater(sum(len(BLOCK.findall(page.read_text())) for page in PAGES), 10)

    def test_links_lead_somewhere(self):
        for page in PAGES:
            for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
                if "://" not in target:
                    with self.subTest(page=page.name, target=target):
                        self.assertTrue((page.parent / target).exists())

    def test_commands_print_what_the_pages_show(self):
        for page in PAGES:
            with self.subTest(page=str(page.relative_to(ROOT))), tempfile.TemporaryDirectory() as folder:
                for name in ("tests", "docs", "argocd-cmp"):
                    os.symlink(ROOT / name, os.path.join(folder, name))
                text = page.read_text()
                new = BLOCK.sub(lambda block: f"```console\n{self.block(block[1], folder)}```", text)
                if UPDATE and new != text:
                    page.write_text(new)
                self.assertEqual(text if not UPDATE else new, new)

    def block(self, text, folder):
        """The block as it should be: commands, and what they printed."""
        out = []
        for step in re.split(r"^(?=\$ )", text, flags=re.M)[1:]:
            first, _, expected = step.partition("\n")
            command = first.removeprefix("$ ")
            while command.endswith("\\"):
                line, _, expected = expected.partition("\n")
                first, command = f"{first}\n{line}", f"{command[:-1]}{line}"
            code = int(found[1]) if (found := re.search(r"# exit (\d+)$", command)) else 0
            done = subprocess.run(
                ["bash", "-c", f"set -o pipefail; {command}"], cwd=folder, env=environment(), stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            )
            self.assertEqual(done.returncode, code, f"{command}\n{done.stdout}")
            printed = "".join(line.rstrip() + "\n" for line in done.stdout.splitlines())
            if "…\n" in expected:
                pattern = ".*".join(re.escape(piece) for piece in re.split(r"^…\n", expected, flags=re.M))
                self.assertRegex(printed, re.compile(f"\\A{pattern}\\Z", re.S), command)
                printed = expected
            out.append(f"{first}\n{printed}")
        return "".join(out)


if __name__ == "__main__":
    unittest.main()
