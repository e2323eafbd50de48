"""What Flux makes of rendered folders: kustomize-controller's own build, with and without variables."""

import pathlib
import re
import shutil
import tempfile
import unittest

from common import BIN, CLUSTERS, FLEET, ROOT, environment, part, run

SAMPLE = ROOT / "docs/samples/flux/oci.yaml"
# Flux replaces these in what it applies, wherever they stand. In a Kustomization of somebody who uses variables for other
# things, the text of an intent has to stay what it is.
VARIABLES = "  postBuild:\n    substitute: {A: replaced, cluster: replaced}\n"
TEXTS = ["a ${A} b", "${A:-other}", "$${A}", "cost: $$5", "^user$$", "$A"]
INTENT = """
apiVersion: meshintent.dev/v1alpha1
kind: TrafficPolicy
metadata: {{name: {name}, namespace: shop}}
spec:
  from: [{{service: web}}]
  to: {{service: bar}}
{spec}
"""


class Flux(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="mesh-flux-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def rendered(self, fleet):
        run(BIN / "kubectl-mesh", "render", "-f", fleet, "--all", "--output-dir", self.folder / "rendered", check=True)
        return self.folder / "rendered"

    def built(self, folder, variables=""):
        """What would be applied from a folder."""
        kustomization = self.folder / "kustomization.yaml"
        kustomization.write_text(SAMPLE.read_text() + variables)
        copy = self.folder / "source"
        shutil.copytree(folder, copy)  # the controller writes into what it has fetched
        try:
            return run(part("flux-build"), kustomization, copy, check=True).stdout
        finally:
            shutil.rmtree(copy)

    def test_every_folder_is_built_and_means_the_same_to_all(self):
        rendered = self.rendered(FLEET)
        for cluster in CLUSTERS:
            with self.subTest(cluster=cluster):
                flux = self.built(rendered / cluster)
                listed = run(BIN / "kubectl-mesh", "render", "-f", FLEET, "--cluster", cluster, "-o", "name", check=True).stdout
                self.assertEqual(len(re.findall("^kind: ", flux, re.M)), len(listed.splitlines()))
                kustomize = run(part("kustomize"), "build", rendered / cluster, check=True).stdout
                kubectl = run(part("kubectl"), "kustomize", rendered / cluster, check=True).stdout
                for other in (kustomize, kubectl):
                    self.assertEqual(sorted(flux.split("---\n")), sorted(other.split("---\n")))

    def test_text_of_intents_is_never_replaced(self):
        fleet = self.folder / "fleet"
        shutil.copytree(FLEET, fleet)
        # Each text in an object of its own, so that none is kept by what its neighbour needs.
        for text in TEXTS:
            with self.subTest(text=text):
                (fleet / "more.yaml").write_text(INTENT.format(name="text", spec=f"  headers: {{request: {{set: {{x-text: '{text}'}}}}}}"))
                built = self.built(self.rendered(fleet) / "eks", VARIABLES)
                self.assertRegex(built, rf"x-text: ['\"]?{re.escape(text)}['\"]?\n")

    def test_every_place_of_free_text_is_kept(self):
        fleet = self.folder / "fleet"
        shutil.copytree(FLEET, fleet)
        for place, spec in {
            "request header": "  headers: {request: {add: {x-text: '${A}'}}}",
            "response header": "  headers: {response: {set: {x-text: '${A}'}}}",
            "origin": "  cors: {allowOrigins: [{exact: 'https://${A}'}], allowMethods: [GET]}",
            "matched header": "  match: [{headers: {x-text: {exact: '${A}'}}}]\n  timeout: 1s",
            "matched expression": "  match: [{headers: {x-text: {regex: '^[${A}]$'}}}]\n  timeout: 1s",
            "matched path": "  match: [{path: {prefix: '/${A}'}}]\n  timeout: 1s",
            "matched query": "  match: [{query: {text: {exact: '${A}'}}}]\n  timeout: 1s",
        }.items():
            with self.subTest(place=place):
                (fleet / "more.yaml").write_text(INTENT.format(name="text", spec=spec))
                built = self.built(self.rendered(fleet) / "eks", VARIABLES)
                self.assertIn("${A}", built)
                self.assertNotIn("replaced", built)

    def test_the_controllers_code_does_replace(self):
        """Without the annotation the texts are changed; otherwise the tests above would prove nothing."""
        fleet = self.folder / "fleet"
        shutil.copytree(FLEET, fleet)
        (fleet / "more.yaml").write_text(INTENT.format(name="text", spec="  headers: {request: {set: {x-text: 'a ${A} $$'}}}"))
        folder = self.rendered(fleet) / "eks"
        for path in folder.glob("virtualservice-*.yaml"):
            path.write_text(re.sub(r".*kustomize\.toolkit\.fluxcd\.io/substitute.*\n", "", path.read_text()))
        self.assertRegex(self.built(folder, VARIABLES), r"x-text: a replaced \$\n")


class Job(unittest.TestCase):
    """The steps of the CI job sample, run as the job runs them, in clones of a repository."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="mesh-job-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.remote = self.folder / "remote.git"
        self.shell(self.folder, f"git init --quiet --bare --initial-branch=main {self.remote}")
        self.clone = self.folder / "clone"
        self.shell(self.folder, f"git clone --quiet {self.remote} {self.clone}")
        self.shell(self.clone, "git checkout --quiet -b main")
        shutil.copytree(FLEET, self.clone / "fleet")
        self.push("first")

    def shell(self, folder, script):
        who = {f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER") for what, value in (("NAME", "t"), ("EMAIL", "t@example.com"))}
        done = run("bash", "-e", "-o", "pipefail", "-c", script, cwd=folder, env=environment(**who, HOME=str(self.folder)))
        self.assertEqual(done.returncode, 0, f"{script}\n{done.stdout}{done.stderr}")
        return done.stdout

    def push(self, message):
        self.shell(self.clone, f"git add --all && git commit --quiet -m '{message}' && git push --quiet origin main")

    def job(self):
        """What the steps print, in a fresh clone; without pushing artifacts, which needs a registry."""
        work = pathlib.Path(tempfile.mkdtemp(dir=self.folder)) / "work"
        self.shell(self.folder, f"git clone --quiet {self.remote} {work}")
        text = (ROOT / "docs/samples/ci/render.yaml").read_text()
        steps = re.findall(r"^    - name: (.*)\n(?:      if: .*\n)?      run: (?:\|\n((?:        .*\n)+)|(.*)\n)", text, re.M)
        self.assertEqual(len(steps), text.count(" run: "))
        return {name: self.shell(work, several or one) for name, several, one in steps if "artifacts" not in name}

    def published(self):
        return self.shell(self.clone, "git fetch --quiet origin && git ls-tree -r --name-only origin/rendered").splitlines()

    def test_it_publishes_what_is_rendered_and_shows_what_changes(self):
        self.assertIn("clusters/eks/kustomization.yaml", self.job()["Show what changes"])
        whole = self.published()
        self.assertEqual({path.split("/")[1] for path in whole}, set(CLUSTERS))
        before = self.shell(self.clone, "git rev-parse origin/rendered")
        self.assertEqual(self.job()["Show what changes"], "", "nothing has changed")
        self.published()
        self.assertEqual(self.shell(self.clone, "git rev-parse origin/rendered"), before, "and nothing is committed")
        # What no document causes any more goes away.
        (self.clone / "fleet/intents/shop.yaml").unlink()
        self.push("without the shop")
        self.assertIn("deleted file", self.job()["Show what changes"])
        left = self.published()
        self.assertLess(len(left), len(whole))
        self.assertFalse([path for path in left if "shop" in path])


if __name__ == "__main__":
    unittest.main()
