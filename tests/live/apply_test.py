"""diff, apply, remove and status: what changes in the clusters, and what never does."""

import json
import shutil
import unittest

from common import CLUSTERS, KINDS, OURS, ROOT, Live, environment, fleet, folder, kubectl, servers, until, users


class Apply(Live):
    def test_apply_creates_and_then_changes_nothing(self):
        for cluster in CLUSTERS:
            kubectl(cluster, "delete", KINDS, "-A", "-l", OURS, "--wait=false")
        self.assertIn("to create", self.mesh("diff", code=1).stdout)
        self.mesh("apply", "--dry-run=server")
        self.mesh("apply", "--dry-run=client")
        self.assertEqual([self.ours(cluster) for cluster in CLUSTERS], [{}, {}, {}], "a dry run writes nothing")
        first = self.mesh("apply")
        self.assertIn("eks: virtualservice.networking.istio.io/user.mesh.bank.example serverside-applied", first.stdout)
        self.assertIn("3 clusters ok", first.stderr)
        versions = [self.ours(cluster) for cluster in CLUSTERS]
        second = self.mesh("apply")
        self.assertNotIn("serverside-applied", second.stdout)
        self.assertEqual(second.stdout.count(" unchanged"), sum(map(len, versions)))
        self.assertEqual([self.ours(cluster) for cluster in CLUSTERS], versions)
        self.assert_in_sync()
        waited = self.mesh("status", "--wait", "--timeout", "30s")
        self.assertEqual(waited.stdout.count("in sync"), 3)

    def test_edit_by_hand_is_shown_and_repaired(self):
        kubectl("eks", "patch", "virtualservice", "-n", "bank", "user.mesh.bank.example", "--type=merge",
                     "-p", '{"spec": {"exportTo": ["*"], "gateways": ["mesh"]}}')
        kubectl("eks", "label", "destinationrule", "-n", "bank", "user.mesh.bank.example", "app.kubernetes.io/managed-by-")
        kubectl("cluster-1", "delete", "virtualservice", "-n", "bank", "user.mesh.bank.example")
        broken = self.broken("eks")
        self.assertEqual(set(broken), {"VirtualService/user.mesh.bank.example", "DestinationRule/user.mesh.bank.example"})
        changes = {change["field"]: change for change in broken["VirtualService/user.mesh.bank.example"]["changes"]}
        self.assertIn(".spec.gateways", changes)
        self.assertEqual(changes[".spec.gateways"]["owners"][0]["manager"], "kubectl-patch")
        self.assertEqual(self.broken("cluster-1")["VirtualService/user.mesh.bank.example"]["state"], "missing")
        self.assertEqual(self.broken("cluster-2"), {})
        self.assertIn("kubectl-patch", self.mesh("status").stdout)
        difference = self.mesh("diff", code=1).stdout
        self.assertIn("-  gateways:", difference)
        self.assertNotIn("cluster cluster-2", difference)
        self.assertEqual(self.mesh("apply").stdout.count("serverside-applied"), 3)
        self.assert_in_sync()

    def test_external_diff(self):
        kubectl("eks", "delete", "virtualservice", "-n", "bank", "user.mesh.bank.example")
        done = self.mesh("diff", code=1, env=environment(KUBECTL_EXTERNAL_DIFF="diff -u -N ;rm"))
        self.assertRegex(done.stdout, r"\+\+\+ /.*/MERGED/networking.istio.io.v1.VirtualService.bank.user.mesh.bank.example")
        self.assertIn("of KUBECTL_EXTERNAL_DIFF", self.mesh("diff", code=2, env=environment(KUBECTL_EXTERNAL_DIFF="no-such-program")).stderr)
        self.mesh("apply")

    def test_removed_intent_is_pruned_and_nothing_else(self):
        before = {cluster: self.ours(cluster) for cluster in CLUSTERS}
        # An object with our label that no intent ever caused is someone's copy.
        kubectl("eks", "create", "configmap", "copy", "-n", "shop", "--from-literal=a=b")
        kubectl("eks", "label", "configmap", "copy", "-n", "shop", OURS)
        self.addCleanup(kubectl, "eks", "delete", "configmap", "copy", "-n", "shop")
        self.remove_document("intents/shop.yaml", "bar-to-wine")
        wanted = {cluster: self.rendered(cluster) for cluster in CLUSTERS}
        gone = {cluster: set(before[cluster]) - wanted[cluster] for cluster in CLUSTERS}
        self.assertTrue(any(gone.values()))
        self.assertIn("surplus", self.mesh("status").stdout)
        self.mesh("apply")
        for cluster in CLUSTERS:
            self.assertGreaterEqual(set(self.ours(cluster)), gone[cluster], "without --prune nothing is deleted")
        refused = self.mesh("apply", "--prune", code=1)
        self.assertIn("--yes", refused.stderr)
        for cluster in CLUSTERS:
            for kind, namespace, name in gone[cluster]:
                self.assertIn(f"{cluster}: {kind.lower()}.", refused.stderr)
                self.assertIn(f"{name} in namespace {namespace}", refused.stderr)
            self.assertGreaterEqual(set(self.ours(cluster)), gone[cluster])
        done = self.mesh("apply", "--prune", "--yes")
        self.assertEqual(done.stdout.count(" deleted"), sum(map(len, gone.values())))
        for cluster in CLUSTERS:
            self.assertEqual(set(self.ours(cluster)) - {("ConfigMap", "shop", "copy")}, wanted[cluster], cluster)

    def test_missing_clusters_do_not_stop_the_others(self):
        kubectl("eks", "delete", "virtualservice", "-n", "bank", "user.mesh.bank.example")
        done = self.mesh("apply", clusters=None, code=1)
        self.assertIn('error: wine: context "wine" does not exist in the kubeconfig', done.stderr)
        self.assertIn("3 clusters ok, 2 failed", done.stderr)
        self.assert_in_sync()

    def test_foreign_field_manager_is_left_alone(self):
        name = ["destinationrule", "-n", "bank", "user.mesh.bank.example"]
        kubectl("eks", "patch", *name, "--type=merge", "--field-manager=traffic-robot",
                     "-p", '{"spec": {"exportTo": ["robot"], "workloadSelector": {"matchLabels": {"a": "b"}}}}')
        kubectl("eks", "delete", "virtualservice", "-n", "bank", "user.mesh.bank.example")
        kubectl("cluster-1", "delete", "virtualservice", "-n", "bank", "user.mesh.bank.example")
        done = self.mesh("apply", code=1)
        self.assertRegex(done.stderr, r'error: eks: destinationrule.*user.mesh.bank.example: .*"traffic-robot"')
        self.assertIn("--force-conflicts", done.stderr)
        self.assertIn("1 held back", done.stderr.replace("4 held back", "1 held back"), "later kinds wait")
        self.assertIn("2 clusters ok, 1 failed", done.stderr)
        self.assertIn("robot", kubectl("eks", "get", *name, "-o", "json"))
        self.assertIn("traffic-robot", self.mesh("diff", code=1).stderr)
        self.mesh("apply", "--force-conflicts")
        self.assert_in_sync()

    def test_foreign_object_of_the_same_name_is_left_alone(self):
        name = ["virtualservice", "-n", "bank", "user.mesh.bank.example"]
        kubectl("eks", "delete", *name)
        theirs = {"apiVersion": "networking.istio.io/v1", "kind": "VirtualService",
                  "metadata": {"name": name[-1], "namespace": "bank"},
                  "spec": {"hosts": ["x.example"], "http": [{"route": [{"destination": {"host": "x.example"}}]}]}}
        kubectl("eks", "create", "-f", "-", input=json.dumps(theirs))
        done = self.mesh("apply", code=1)
        self.assertIn("was not put there by kubectl-mesh", done.stderr)
        self.assertEqual(json.loads(kubectl("eks", "get", *name, "-o", "json"))["spec"], theirs["spec"])
        self.assertEqual(self.broken("eks")["VirtualService/user.mesh.bank.example"]["state"], "foreign")
        self.mesh("apply", "--force-conflicts")
        self.assert_in_sync()

    def test_no_permission_for_one_kind(self):
        self.edit("inventory/clusters.yaml", "context: eks", "context: editor@eks")
        kubectl("eks", "delete", "authorizationpolicy,virtualservice", "-n", "bank", "-l", OURS)
        done = self.mesh("apply", env=users(), code=1)
        self.assertRegex(done.stderr, r"error: eks: authorizationpolicy.*Error from server \(Forbidden\)")
        self.assertNotIn("eks: virtualservice.networking.istio.io/user.mesh.bank.example serverside-applied", done.stdout,
                         "routes wait for access")
        self.assertIn("2 clusters ok, 1 failed", done.stderr)
        self.assertNotIn("unknown", self.mesh("status", env=users()).stdout, "reading is allowed")
        self.edit("inventory/clusters.yaml", "context: editor@eks", "context: eks")
        self.mesh("apply")
        self.assert_in_sync()

    def test_expired(self):
        self.edit("inventory/clusters.yaml", "context: eks", "context: expired@eks")
        for verb, code in (("apply", 1), ("diff", 2), ("status", 1)):
            done = self.mesh(verb, env=users(), code=code)
            self.assertEqual(done.stderr.count("error: eks: You must be logged in to the server (Unauthorized)"), 1, done.stderr)

    def test_slow_server(self):
        fleet("slow", "eks", "300")
        try:
            kubectl("eks", "delete", "virtualservice", "-n", "bank", "--all")
            self.mesh("apply")
            # Slower than anyone wants to wait, while a busy machine's other servers still answer in time.
            fleet("slow", "eks", "20000")
            done = self.mesh("diff", "--request-timeout", "5s", code=2)
            self.assertIn("error: eks: Unable to connect to the server", done.stderr)
            self.assertIn("no answer within 5s", done.stderr)
            self.assertIn("2 clusters ok, 1 failed", done.stderr)
        finally:
            fleet("fast", "eks")
        self.assert_in_sync()

    def test_missing_crd(self):
        name = "peerauthentications.security.istio.io"
        crd = json.loads(kubectl("cluster-2", "get", "crd", name, "-o", "json"))
        crd.pop("status")
        crd["metadata"] = {key: crd["metadata"].get(key, {}) for key in ("name", "labels", "annotations")}
        kubectl("cluster-2", "delete", "crd", name)
        try:
            done = self.mesh("apply", code=1)
            self.assertIn('no matches for kind "PeerAuthentication" in version "security.istio.io/v1"; ensure CRDs are installed first',
                          done.stderr)
            self.assertIn("2 clusters ok, 1 failed", done.stderr)
        finally:
            kubectl("cluster-2", "create", "-f", "-", input=json.dumps(crd))
            kubectl("cluster-2", "wait", "--for=condition=Established", f"crd/{name}", "--timeout=30s")
        until(lambda: self.mesh("apply", code=None).returncode == 0)
        self.assert_in_sync()
        self.leaves = {("customresourcedefinitions.apiextensions.k8s.io", "", name)}  # a new one

    def test_istio_has_its_say(self):
        """What istiod's analysis writes into the status of an object is shown, as long as it is about what is there."""
        name = ["virtualservice", "-n", "bank", "user.mesh.bank.example"]
        live = json.loads(kubectl("eks", "get", *name, "-o", "json"))
        message = {"level": "ERROR", "type": {"code": "IST0101", "name": "ReferencedResourceNotFound"}}
        for seen, shown in ((live["metadata"]["generation"], 1), (live["metadata"]["generation"] - 1, 0)):
            status = {"observedGeneration": seen, "validationMessages": [message]}
            kubectl("eks", "patch", *name, "--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))
            self.assertEqual(self.mesh("status").stdout.count("IST0101 ReferencedResourceNotFound"), shown)

    def test_broken_documents_reach_no_cluster(self):
        self.edit("intents/bank.yaml", "dependsOn: [user]", "dependsOn: [usr]")
        for verb, code in (("apply", 1), ("diff", 2), ("status", 1)):
            done = self.mesh(verb, code=code)
            self.assertEqual(done.stdout, "")
            self.assertIn("bank.yaml", done.stderr)

    def test_what_is_shown_for_support_holds_no_secrets(self):
        kubectl("eks", "delete", "virtualservice", "-n", "bank", "user.mesh.bank.example")
        audited = servers() / "eks/audit.log"
        before = audited.read_text().count("kubectl-mesh/")
        done = self.mesh("support")
        self.assertIn("3 clusters, 0 of them could not be asked", done.stderr)
        shown = json.loads(done.stdout)
        facts = {fact["cluster"]: fact for fact in shown["clusters"]}
        self.assertEqual(facts["eks"]["istiod"][0]["image"], "istio/pilot:1.31.1")
        self.assertIn("v1", facts["eks"]["served"]["networking.istio.io"])
        missing = {item["name"] for cluster in shown["status"] for item in cluster["objects"] if item["state"] == "missing"}
        self.assertEqual(missing, {"user.mesh.bank.example"})
        self.assertTrue(shown["explain"] and isinstance(shown["findings"], list))
        self.assertEqual(audited.read_text().count("kubectl-mesh/"), before, "no Secret was asked for")
        for user in json.loads((servers() / "kubeconfig").read_text())["users"]:
            self.assertNotIn(user["user"]["token"], done.stdout)
        (self.intents / "support.json").write_text(done.stdout)
        self.mesh("apply")  # the file among the documents does no harm

    def test_unknown_cluster(self):
        self.assertIn("eks", self.mesh("apply", clusters=["ekss"], code=1).stderr)

    def test_two_thousand_objects(self):
        many = folder() / "many"
        many.mkdir(exist_ok=True)
        services = "".join(SERVICE.format(number=number) for number in range(500))
        shutil.copy(self.intents / "inventory/clusters.yaml", many)
        (many / "services.yaml").write_text(services)
        self.intents = many
        count = len(self.rendered("eks"))
        self.assertGreaterEqual(count, 2000)
        for wanted in (count, 0):
            done = self.mesh("apply", clusters=["eks"])
            self.assertEqual(done.stdout.count("serverside-applied"), wanted)
        self.mesh("diff", clusters=["eks"])
        shutil.copytree(ROOT / "tests/golden/example/fleet", folder() / "again", dirs_exist_ok=True)
        self.intents = folder() / "again"
        self.mesh("apply", "--prune", "--yes", clusters=["eks"])
        self.assert_in_sync()


SERVICE = """\
---
apiVersion: meshintent.dev/v1alpha1
kind: MeshService
metadata: {{name: s{number}, namespace: shop}}
spec: {{clusters: [eks, cluster-1], ports: [{{name: http, port: 8080}}], expose: {{hostnames: [s{number}.mesh.example]}}}}
---
apiVersion: meshintent.dev/v1alpha1
kind: MeshService
metadata: {{name: c{number}, namespace: shop}}
spec: {{clusters: [eks], ports: [{{name: http, port: 8080}}], dependsOn: [s{number}]}}
"""


if __name__ == "__main__":
    unittest.main()
