"""The inventory and the places of services, written by the programs themselves."""

import base64
import contextlib
import json
import re
import subprocess
import unittest

from common import ROOT, Live, environment, fleet, kubectl, run, servers, until, users


class Import(Live):
    def imported(self, *arguments, env=None, code=0):
        done = run("kubectl", "mesh", "clusters", "import", *arguments, env=env or environment())
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def server(self, cluster):
        known = json.loads((servers() / "kubeconfig").read_text())["clusters"]
        return next(entry["cluster"]["server"] for entry in known if entry["name"] == cluster)

    def define(self, part):
        """Definitions of a project, in the cluster that plays the hub. They stay: a server that has just begun to serve a
        kind may not be able to stop."""
        path = run(ROOT / "tests/parts/build", "crds").stdout.strip() + f"/{part}.yaml"
        names = kubectl("eks", "create", "-f", path, "-o", "jsonpath={.metadata.name}{\"\\n\"}").split()
        kubectl("eks", "wait", "--for=condition=Established", "-f", path, "--timeout=30s")
        self.leaves = {("customresourcedefinitions.apiextensions.k8s.io", "", name) for name in names}

    def create(self, item):
        kubectl("eks", "create", "-f", "-", input=json.dumps(item))
        if "status" in item:
            kubectl("eks", "apply", "--server-side", "--subresource=status", "-f", "-", input=json.dumps(item))

    def test_import_writes_the_inventory(self):
        done = self.imported()
        (self.intents / "inventory/clusters.yaml").write_text(done.stdout)
        listed = json.loads(run("kubectl", "mesh", "clusters", "list", "-f", self.intents / "inventory", "-o", "json",
                                env=environment()).stdout)
        eks = next(cluster for cluster in listed if cluster["name"] == "eks")
        self.assertEqual((eks["region"], eks["network"], eks["trustDomain"], eks["gateway"], eks["version"]),
                         ("us-east-1", "aws", "eks.bank.example", "203.0.113.9:15443", "1.31"), done.stdout)
        self.assertIn("# label topology.istio.io/network of namespace istio-system", done.stdout)

    def test_credentials_of_argo_cd_never_leave_the_api_server(self):
        secret = "c" * 40
        kubectl("eks", "create", "namespace", "argocd")
        self.leaves = {("namespaces", "", "argocd")}  # nothing here finishes deleting one
        kubectl("eks", "create", "secret", "generic", "one", "-n", "argocd", "--from-literal=name=Prod.EU",
                f"--from-literal=server={self.server('eks')}", f"--from-literal=config={secret}")
        try:
            kubectl("eks", "label", "secret", "one", "-n", "argocd", "argocd.argoproj.io/secret-type=cluster", "tier=foo")
            stored = kubectl("eks", "get", "secret", "one", "-n", "argocd", "-o", "json", "--show-managed-fields")
            done = self.imported("--from", "argocd", "--context", "eks", "-v=9")
            for part in ("name: prod-eu ", "tier: foo", "context: eks", "region: us-east-1"):
                self.assertIn(part, done.stdout)
            after = kubectl("eks", "get", "secret", "one", "-n", "argocd", "-o", "json", "--show-managed-fields")
            self.assertEqual(after, stored, "nothing is written")
            # What the API server says that it answered.
            lines = (servers() / "eks/audit.log").read_text().splitlines()
            answers = [answer for answer in map(json.loads, lines) if answer["stage"] == "ResponseComplete"]
            ours = [answer for answer in answers if answer.get("userAgent", "").startswith("kubectl-mesh/")]
            self.assertEqual({answer["verb"] for answer in ours}, {"list", "patch"})
            self.assertEqual({answer["responseObject"]["kind"] for answer in ours}, {"PartialObjectMetadata", "PartialObjectMetadataList"})
            encoded = base64.b64encode(secret.encode()).decode()
            self.assertNotIn(encoded, json.dumps(ours))
            self.assertIn(encoded, json.dumps(answers), "the log would show it")
            for text in (secret, encoded):
                self.assertNotIn(text, done.stdout + done.stderr)
            # Someone who may not ask for the values: the metadata has to do.
            done = self.imported("--from", "argocd", "--context", "viewer@eks", env=users(), code=1)
            self.assertIn("name: one ", done.stdout)
            self.assertIn("whose values may not be asked for", done.stdout)
        finally:
            kubectl("eks", "delete", "secret", "one", "-n", "argocd")

    def test_import_from_open_cluster_management(self):
        done = self.imported("--from", "ocm", "--context", "eks", code=1)
        self.assertIn("could not find the requested resource", done.stderr)
        self.define("ocm")
        self.create({
            "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
            "metadata": {"name": "somewhere", "labels": {"tier": "foo", "feature.open-cluster-management.io/addon": "x"}},
            "spec": {"hubAcceptsClient": True, "managedClusterClientConfigs": [{"url": self.server("cluster-1")}]},
            "status": {"conditions": [], "version": {},
                       "clusterClaims": [{"name": "region.open-cluster-management.io", "value": "eu-1"}]},
        })
        done = self.imported("--from", "ocm", "--context", "eks")
        for part in ("name: somewhere", "# ManagedCluster somewhere", "tier: foo", "region: eu-1", "context: cluster-1",
                     "# claim region.open-cluster-management.io", "trustDomain: cluster-1.bank.example"):
            self.assertIn(part, done.stdout)
        self.assertNotIn("addon", done.stdout)

    def test_import_from_cluster_profiles(self):
        done = self.imported("--from", "cluster-profile", "--context", "eks", code=1)
        self.assertIn("could not find the requested resource", done.stderr)
        self.define("cluster-inventory")
        profile = {
            "apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ClusterProfile",
            "metadata": {"name": "other", "namespace": "bank", "labels": {"tier": "foo", "x-k8s.io/cluster-manager": "x"}},
            "spec": {"displayName": "other", "clusterManager": {"name": "x"}},
            "status": {"conditions": [], "version": {},
                       "properties": [{"name": "region.open-cluster-management.io", "value": "eu-2"}],
                       "accessProviders": [{"name": "x", "cluster": {"server": self.server("cluster-2")}}]},
        }
        self.create(profile)
        done = self.imported("--from", "cluster-profile", "--context", "eks")
        for part in ("name: other", "# ClusterProfile other", "tier: foo", "region: eu-2", "context: cluster-2",
                     "trustDomain: cluster-2.bank.example"):
            self.assertIn(part, done.stdout)
        self.assertNotIn("x-k8s.io", done.stdout)
        empty = self.imported("--from", "cluster-profile", "--context", "eks", "-n", "shop", code=1)
        self.assertIn("the source knows no clusters", empty.stderr)

    def test_contexts_that_do_not_exist(self):
        self.assertIn('context "nowhere" does not exist', self.imported("--from", "ocm", "--context", "nowhere", code=1).stderr)
        self.assertIn('there is no cluster "nowhere"; there are: eks', self.imported("nowhere", code=1).stderr)


class Discover(Live):
    def setUp(self):
        super().setUp()
        path = self.intents / "inventory/clusters.yaml"
        documents = path.read_text().split("---\n")
        path.write_text("---\n".join(one for one in documents if "name: wine\n" not in one and "name: canary-1\n" not in one))
        self.observed = self.intents / "inventory/observed.yaml"
        self.command = ["kubectl-mesh", "discover", "-f", str(self.intents), "--output", str(self.observed)]

    def places(self, service):
        """Where a service runs, as the file has it now."""
        with contextlib.suppress(FileNotFoundError):
            for entry in self.observed.read_text().split("  - namespace: ")[1:]:
                if f"name: {service}\n" in entry:
                    return re.findall(r"- (\S+)\n", entry.split("clusters:\n")[1].split("serviceAccounts:")[0])
        return None

    def test_what_cannot_be_asked_is_kept(self):
        self.assertEqual(run(*self.command, env=environment()).returncode, 0)
        before = self.observed.read_text()
        self.assertEqual(self.places("user"), ["cluster-1", "cluster-2", "eks"])
        fleet("stop", "eks")
        try:
            done = run(*self.command, env=environment())
            self.assertEqual(done.returncode, 1)
            self.assertIn("what was known about eks is kept", done.stderr)
            self.assertEqual(self.observed.read_text(), before)
        finally:
            fleet("start", "eks")
        done = run(*self.command[:-1], self.intents / "intents/bank.yaml", env=environment())
        self.assertIn("was not written by `kubectl mesh discover`", done.stderr)

    def move(self, start, end):
        """Moves bank/order from one cluster to another."""
        kinds = ["serviceaccount/order", "service/order", "pod/order-1", "endpointslice/order-1"]
        for item in json.loads(kubectl(start, "get", "-n", "bank", *kinds, "-o", "json"))["items"]:
            for field in ("uid", "resourceVersion", "creationTimestamp", "ownerReferences", "generation"):
                item["metadata"].pop(field, None)
            item.pop("status", None)
            for field in ("clusterIP", "clusterIPs"):
                item.get("spec", {}).pop(field, None)
            kubectl(end, "create", "-f", "-", input=json.dumps(item))
        kubectl(start, "delete", "-n", "bank", "--grace-period=0", "--force", *kinds)

    def test_the_file_follows_the_services(self):
        self.leaves = {("serviceaccounts", "bank", "order"), ("services", "bank", "order"), ("pods", "bank", "order-1")}
        self.edit("intents/bank.yaml", "  clusters: [cluster-2]\n", "")
        # Whatever is seen within the hour was not seen by looking again.
        command = [*self.command, "--watch", "--interval", "1h", "--grace", "0s"]
        log = self.intents / "log"
        with log.open("w") as errors, subprocess.Popen(command, env=environment(), stderr=errors) as watching:
            try:
                until(lambda: self.places("order") == ["cluster-2"])
                self.move("cluster-2", "cluster-1")
                until(lambda: self.places("order") == ["cluster-1"])
                fleet("stop", "cluster-1")
                until(lambda: "error: cluster-1: " in log.read_text())
                self.assertEqual(self.places("order"), ["cluster-1"], "what was known is kept")
                fleet("start", "cluster-1")
                # Before anyone watches again.
                self.move("cluster-1", "cluster-2")
                until(lambda: self.places("order") == ["cluster-2"])
                self.assertIn("cluster-1: watched again", log.read_text())
            finally:
                watching.terminate()
        self.assertIn("order", run("kubectl", "mesh", "explain", "-f", self.intents, env=environment()).stdout)


if __name__ == "__main__":
    unittest.main()
