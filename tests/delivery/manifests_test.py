"""Every sample manifest, held by real API servers with the CRDs of Argo CD, Flux and Open Cluster Management."""

import json
import shutil
import subprocess
import tempfile
import time
import unittest

from common import BIN, CLUSTERS, FLEET, ROOT, environment, module, part, run

# The newest release whose CRDs are published; the samples use fields (sourceHydrator's plugin) that 3.2 does not have.
ARGO_CD = ("github.com/argoproj/argo-cd/v3", "v3.5.1")
NAMESPACES = ["argocd", "flux-system", *CLUSTERS, "istio-system", "bank", "shop", "web", "monitoring", "istio-gateways"]


class Manifests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="mesh-delivery-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        fleet = ROOT / "tests/fleet/fleet"
        options = ["--dir", cls.folder]
        cls.addClassCleanup(subprocess.run, [fleet, *options, "down"], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([fleet, *options, "up", "--no-istiod", "--clusters", "hub"], check=True, stdout=subprocess.DEVNULL)
        cls.environment = environment(KUBECONFIG=f"{cls.folder}/kubeconfig")
        cls.argo = module(*ARGO_CD)
        crds = part("crds")
        files = [cls.argo / f"manifests/crds/{name}-crd.yaml" for name in ("application", "applicationset", "appproject")]
        files += [crds / "flux.yaml", crds / "ocm.yaml"]
        cls.check("apply", "--server-side", *(word for file in files for word in ("-f", file)))
        for _ in range(5):  # kubectl cannot wait for a CRD that has no conditions yet
            if cls.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s").returncode == 0:
                break
            time.sleep(1)
        have = cls.check("get", "namespaces", "-o", "name")
        for namespace in NAMESPACES:
            if f"namespace/{namespace}\n" not in have:
                cls.check("create", "namespace", namespace)

    @classmethod
    def kubectl(cls, *arguments, **options):
        return run("kubectl", *arguments, env=cls.environment, **options)

    @classmethod
    def check(cls, *arguments, **options):
        done = cls.kubectl(*arguments, **options)
        if done.returncode:
            raise AssertionError(f"kubectl {' '.join(map(str, arguments))}: {done.stderr}")
        return done.stdout

    def test_every_sample_is_taken(self):
        samples = sorted([*(ROOT / "argocd-cmp/samples").rglob("*.yaml"), *(ROOT / "docs/samples").rglob("*.yaml")])
        samples = [sample for sample in samples if sample.parent.name != "ci"]  # GitHub's language, not Kubernetes'
        self.assertGreater(len(samples), 10)
        for sample in [*samples, ROOT / "argocd-cmp/install/admission-policy.yaml"]:
            with self.subTest(sample=str(sample.relative_to(ROOT))):
                self.assertRegex(sample.read_text(), r"\A#(.*\n#)*.*(kubectl|Try it)", "a sample begins with what it is for and how to try it")
                self.check("apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", sample)

    def test_the_sidecar_fits_argo_cds_own_repo_server(self):
        self.check("-n", "argocd", "apply", "-f", self.argo / "manifests/base/repo-server/argocd-repo-server-deployment.yaml")
        patch = ROOT / "argocd-cmp/install/repo-server-sidecar.yaml"
        text = self.check("-n", "argocd", "patch", "deployment", "argocd-repo-server", "--patch-file", patch, "--dry-run=server", "-o", "json")
        pod = json.loads(text)["spec"]["template"]["spec"]
        containers = {container["name"]: container for container in pod["containers"]}
        self.assertEqual(set(containers), {"mesh-cmp", "argocd-repo-server"})
        volumes = {volume["name"] for volume in pod["volumes"]}
        for mount in containers["mesh-cmp"]["volumeMounts"]:
            self.assertIn(mount["name"], volumes)
        # The folders of the two containers have to be the same ones.
        ours = {mount["name"]: mount["mountPath"] for mount in containers["mesh-cmp"]["volumeMounts"]}
        theirs = {mount["name"]: mount["mountPath"] for mount in containers["argocd-repo-server"]["volumeMounts"]}
        self.assertEqual(ours["plugins"], theirs["plugins"])
        self.assertNotIn(ours["mesh-cmp-tmp"], [path for name, path in theirs.items() if name == "mesh-cmp-tmp"])

    def test_the_health_checks_fit_argo_cds_own_configuration(self):
        self.check("-n", "argocd", "apply", "-f", self.argo / "manifests/base/config/argocd-cm.yaml")
        self.check("-n", "argocd", "patch", "configmap", "argocd-cm", "--patch-file", ROOT / "argocd-cmp/install/health.yaml", "--dry-run=server")

    def test_manifest_works_are_taken_by_a_hub(self):
        for cluster in CLUSTERS:
            with self.subTest(cluster=cluster):
                work = run(BIN / "kubectl-mesh", "render", "-f", FLEET, "--cluster", cluster, "--emit", "manifestwork", check=True).stdout
                self.check("apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-", input=work)
                objects = run(BIN / "kubectl-mesh", "render", "-f", FLEET, "--cluster", cluster, "-o", "json", check=True).stdout
                inside = json.loads(run(BIN / "kubectl-mesh", "render", "-f", FLEET, "--cluster", cluster, "--emit", "manifestwork", "-o", "json", check=True).stdout)
                objects = json.loads(objects)
                self.assertEqual(inside["spec"]["workload"]["manifests"], objects.get("items", [objects]))
                self.assertEqual(inside["metadata"]["namespace"], cluster)

    def test_rendered_folders_are_taken_as_they_are(self):
        rendered = f"{self.folder}/rendered"
        run(BIN / "kubectl-mesh", "render", "-f", FLEET, "--all", "--output-dir", rendered, check=True)
        kustomize = part("kustomize")
        for cluster in CLUSTERS:
            with self.subTest(cluster=cluster):
                folder = f"{rendered}/{cluster}"
                built = run(kustomize, "build", folder, check=True).stdout
                listed = run(BIN / "kubectl-mesh", "render", "-f", FLEET, "--cluster", cluster, "-o", "name", check=True).stdout
                self.assertEqual(built.count("\nkind: ") + built.startswith("kind: "), len(listed.splitlines()))
                self.check("apply", "--server-side", "--dry-run=server", "--validate=strict", "-k", folder)

    def test_destination_and_parameter_are_the_same(self):
        self.check("apply", "--server-side", "-f", ROOT / "argocd-cmp/install/admission-policy.yaml")

        def plugin(*names, plugin="mesh-v0.1.0"):
            return {"name": plugin, "parameters": [{"name": "cluster", "string": name} for name in names]}

        def source(**more):
            return {"repoURL": "https://git.example.com/fleet.git", "path": "fleet", **more}

        eks, server = {"name": "eks"}, {"server": "https://192.0.2.1"}
        good = {
            "the same": (eks, {"source": source(plugin=plugin("eks"))}),
            "another plugin": (eks, {"source": source(plugin=plugin("wine", plugin="other"))}),
            "no plugin": (server, {"source": source()}),
            "hydrated": (eks, {"sourceHydrator": self.hydrator(plugin("eks"))}),
        }
        bad = {
            "another cluster": (eks, {"source": source(plugin=plugin("wine"))}),
            "a second, other value": (eks, {"source": source(plugin=plugin("eks", "wine"))}),
            "no parameter": (eks, {"source": source(plugin=plugin())}),
            "no parameters": (eks, {"source": source(plugin={"name": "mesh-v0.1.0"})}),
            "another version": (eks, {"source": source(plugin=plugin("wine", plugin="mesh-v9.9.9"))}),
            "an array": (eks, {"source": source(plugin={"name": "mesh-v0.1.0", "parameters": [{"name": "cluster", "array": ["eks"]}]})}),
            "by server": (server, {"source": source(plugin=plugin("eks"))}),
            "one of several sources": (eks, {"sources": [source(), source(plugin=plugin("wine"))]}),
            "hydrated": (eks, {"sourceHydrator": self.hydrator(plugin("wine"))}),
        }
        for _ in range(100):  # the API server takes a moment to know the policy
            if self.try_to_create(*bad["another cluster"]).returncode:
                break
        for name, (destination, spec) in good.items():
            with self.subTest(good=name):
                done = self.try_to_create(destination, spec)
                self.assertEqual(done.returncode, 0, done.stderr)
        for name, (destination, spec) in bad.items():
            with self.subTest(bad=name):
                done = self.try_to_create(destination, spec)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn("mesh-destination-is-cluster-parameter", done.stderr)

    @staticmethod
    def hydrator(plugin):
        return {
            "drySource": {"repoURL": "https://git.example.com/fleet.git", "targetRevision": "main", "path": "fleet", "plugin": plugin},
            "syncSource": {"targetBranch": "rendered", "path": "clusters/eks"},
        }

    def try_to_create(self, destination, spec):
        application = {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Application",
            "metadata": {"name": "try", "namespace": "argocd"},
            "spec": {"project": "mesh", "destination": destination, **spec},
        }
        return self.kubectl("create", "--dry-run=server", "--validate=strict", "-f", "-", input=json.dumps(application))


if __name__ == "__main__":
    unittest.main()
