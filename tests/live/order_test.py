"""In which order clusters change, and what is left when a change is cut short."""

import json
import signal
import subprocess
import time
import unittest

from common import CLUSTERS, KINDS, OURS, Live, environment, fleet, identity, kubectl, until


class Order(Live):
    def delete_ours(self, clusters=CLUSTERS):
        for cluster in clusters:
            kubectl(cluster, "delete", KINDS, "-A", "-l", OURS, "--wait=false")

    def one(self, cluster, *name):
        return json.loads(kubectl(cluster, "get", *name, "-o", "json", "--show-managed-fields"))

    def changed(self, cluster, *name):
        """When the suite last changed an object; whole seconds."""
        managers = self.one(cluster, *name)["metadata"]["managedFields"]
        return max(entry["time"] for entry in managers if entry["manager"] == "kubectl-mesh")

    def test_offers_stand_before_callers_are_switched(self):
        self.delete_ours()
        fleet("slow", "cluster-2", "700")
        try:
            self.mesh("apply")
        finally:
            fleet("fast", "cluster-2")
        offers, uses = [], []
        for cluster in CLUSTERS:
            for item in json.loads(kubectl(cluster, "get", KINDS, "-A", "-l", OURS, "-o", "json"))["items"]:
                kind, _, name = identity(item)
                offer = kind in ("Gateway", "AuthorizationPolicy", "PeerAuthentication") or ".exported." in name
                (offers if offer else uses).append(item["metadata"]["creationTimestamp"])
        self.assertLessEqual(max(offers), min(uses))

    def test_access_is_taken_back_when_callers_have_gone(self):
        self.edit("intents/bank.yaml", "in: [eks, cluster-1]", "in: [eks]")
        fleet("slow", "eks", "700")
        try:
            done = self.mesh("apply")
        finally:
            fleet("fast", "eks")
        self.assertIn("cluster-1: authorizationpolicy.security.istio.io/user.bank serverside-applied", done.stdout)
        # All that eks had was a copy in cluster-1; its entry is changed, or waits to be pruned.
        route = self.changed("eks", "virtualservice", "-n", "bank", "user.mesh.bank.example")
        self.assertLessEqual(route, self.changed("cluster-1", "authorizationpolicy", "-n", "bank", "user.bank"))
        self.mesh("apply", "--prune", "--yes")
        self.assert_in_sync()

    def test_no_new_callers_are_sent_to_a_cluster_that_is_not_ready(self):
        self.edit("intents/bank.yaml", "in: [eks, cluster-1]", "in: [eks, cluster-1, cluster-2]")
        self.edit("intents/shop.yaml", "percent: 20", "percent: 30")
        entry = ["serviceentry", "-n", "bank", "user.mesh.bank.example.remote"]
        before = self.one("eks", *entry)
        fleet("stop", "cluster-2")
        try:
            done = self.mesh("apply", code=1)
        finally:
            fleet("start", "cluster-2")
        self.assertRegex(done.stderr, r"error: eks: \d+ objects wait for cluster-2, which would newly serve user.mesh.bank.example")
        self.assertIn("1 clusters ok, 2 failed".replace("1 clusters", "1 cluster"), done.stderr)
        self.assertEqual(self.one("eks", *entry), before)
        routes = self.one("eks", "virtualservice", "-n", "shop", "bar.mesh.bank.example")["spec"]["http"][0]["route"]
        self.assertEqual([route["weight"] for route in routes], [70, 30], "what has nothing to do with it goes on")
        self.mesh("apply")
        self.assert_in_sync()

    def test_offers_stay_as_long_as_someone_may_use_them(self):
        self.edit("intents/bank.yaml", "  dependsOn: [{service: order, clusters: [eks, cluster-2]}]\n", "")
        offer = ["serviceentry", "-n", "bank", "order.bank.exported.meshintent.dev"]
        before = self.one("cluster-2", *offer)
        fleet("stop", "eks")
        try:
            done = self.mesh("apply", "--prune", "--yes", code=1)
        finally:
            fleet("start", "eks")
        self.assertRegex(done.stderr, r"error: cluster-2: \d+ deletions wait: callers in eks may still need them")
        self.assertEqual(self.one("cluster-2", *offer), before)
        self.mesh("apply", "--prune", "--yes")
        self.assert_in_sync()

    def test_cluster_stopped_in_the_middle(self):
        fleet("slow", "eks", "700")
        try:
            for cluster in CLUSTERS:
                kubectl(cluster, "delete", KINDS, "-A", "-l", OURS, "--wait=false")
            command = ["kubectl", "mesh", "apply", "-f", str(self.intents), "--cluster", ",".join(CLUSTERS)]
            with subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as apply:
                until(lambda: self.stored("eks"))
                fleet("stop", "eks")
                _, errors = apply.communicate(timeout=60)
            self.assertEqual(apply.returncode, 1, errors)
            self.assertRegex(errors, "error: eks: (The connection to|Unable to connect to) the server")
            self.assertIn("2 clusters ok, 1 failed", errors)
            self.assert_in_sync(["cluster-1", "cluster-2"])
        finally:
            fleet("start", "eks")
            fleet("fast", "eks")
        found = set(self.ours("eks"))
        self.assertTrue(found and found < self.rendered("eks"), "it was stopped in the middle")
        self.mesh("apply")
        self.assert_in_sync()

    def test_interrupted_apply_converges(self):
        fleet("slow", "eks", "100")
        try:
            for moment in (0.05, 0.3, 0.6, 1.0):
                kubectl("eks", "delete", KINDS, "-A", "-l", OURS, "--wait=false")
                command = ["kubectl-mesh", "apply", "-f", str(self.intents), "--cluster", "eks"]
                with subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as apply:
                    time.sleep(moment)
                    apply.send_signal(signal.SIGKILL)
                kinds = [kind for kind, _, _ in self.ours("eks")]
                if "VirtualService" in kinds:
                    self.assertLessEqual({"ServiceEntry", "DestinationRule", "AuthorizationPolicy"}, set(kinds), "make before break")
                self.mesh("apply", clusters=["eks"])
                self.assert_in_sync(["eks"])
        finally:
            fleet("fast", "eks")


if __name__ == "__main__":
    unittest.main()
