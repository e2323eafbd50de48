package judge

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// judgeNeed finds what was rendered for nobody. The requests that were followed before left traces of every host
// they used; whatever names a host without a trace, or selects no workload that needs it, is not needed.
func (c *court) judgeNeed() {
	for _, cluster := range c.world.Fleet.Clusters {
		istiod := c.istiods[cluster.Name]
		if istiod == nil {
			continue
		}
		objects := c.world.Rendered[cluster.Name]
		if len(objects) == 0 {
			c.out.add(Verdict{Check: "needed", Cluster: cluster.Name, Expected: "at least the marker ConfigMap", Istio: "nothing is rendered"})
		}
		for _, o := range objects {
			if why := c.needless(o, istiod, len(objects)); why != "" {
				c.out.add(Verdict{Check: "needed", Cluster: cluster.Name, Host: describe(o), Expected: "only what somebody needs", Istio: why})
			}
		}
		c.judgeOffer(istiod)
	}
}

// needless says why nobody needs an object.
func (c *court) needless(o *unstructured.Unstructured, i *Istiod, objects int) string {
	trace := c.traces[i.Cluster.Name]
	if !slices.Contains(i.Workloads.Namespaces, o.GetNamespace()) {
		return fmt.Sprintf("the namespace %q does not exist there", o.GetNamespace())
	}
	switch o.GetKind() {
	case "ServiceEntry":
		return unused("host", nested(o, "spec", "hosts"), trace.hosts, trace.dialled)
	case "DestinationRule":
		host, _, _ := unstructured.NestedString(o.Object, "spec", "host")
		return unused("host", []string{host}, trace.hosts, trace.dialled)
	case "VirtualService":
		return unused("host", nested(o, "spec", "hosts"), trace.dialled)
	case "Gateway":
		servers, _, _ := unstructured.NestedSlice(o.Object, "spec", "servers")
		var hosts []string
		for _, s := range servers {
			if server, ok := s.(map[string]any); ok {
				for _, h := range nested(&unstructured.Unstructured{Object: server}, "hosts") {
					hosts = append(hosts, h[strings.LastIndex(h, "/")+1:])
				}
			}
		}
		return unused("host", hosts, trace.hosts)
	case "AuthorizationPolicy":
		return c.needlessPolicy(o, i, "selector")
	case "PeerAuthentication":
		if _, ok, _ := unstructured.NestedMap(o.Object, "spec", "selector"); !ok {
			return c.needlessMeshRule(o, i)
		}
		return c.needlessPolicy(o, i, "selector")
	case "Sidecar":
		for _, pod := range selected(o, i, "workloadSelector", "labels") {
			if pod.Copy.Service.Egress != "open" {
				return ""
			}
		}
		return "it selects no workload that declares its egress"
	case "Service":
		name := o.GetName() + "." + o.GetNamespace() + ".svc.cluster.local"
		return unused("name", []string{name}, trace.dialled)
	case "ConfigMap":
		if objects == 1 && o.GetNamespace() == i.Cluster.Mesh.ImportNamespace {
			return ""
		}
		return "the marker is for clusters without any other object"
	}
	return "this suite renders no such kind"
}

func nested(o *unstructured.Unstructured, path ...string) []string {
	list, _, _ := unstructured.NestedStringSlice(o.Object, path...)
	return list
}

func unused(what string, names []string, used ...map[string]bool) string {
	for _, name := range names {
		if !slices.ContainsFunc(used, func(u map[string]bool) bool { return u[name] }) {
			return fmt.Sprintf("no request of the fleet uses %s %s", what, name)
		}
	}
	if len(names) == 0 {
		return "it names no " + what
	}
	return ""
}

// selected lists the pods that an object selects; without a selector, none.
func selected(o *unstructured.Unstructured, i *Istiod, path ...string) []*Pod {
	want, ok, _ := unstructured.NestedStringMap(o.Object, append([]string{"spec"}, path...)...)
	if !ok || len(want) == 0 {
		return nil
	}
	var out []*Pod
	for _, pod := range i.Workloads.Pods {
		if pod.Namespace == o.GetNamespace() && contains(pod.Labels, want) {
			out = append(out, pod)
		}
	}
	return out
}

func contains(labels, want map[string]string) bool {
	for key, value := range want {
		if labels[key] != value {
			return false
		}
	}
	return true
}

// needlessPolicy wants a selector, and only workloads under an access policy behind it.
func (c *court) needlessPolicy(o *unstructured.Unstructured, i *Istiod, selector string) string {
	pods := selected(o, i, selector, "matchLabels")
	if len(pods) == 0 {
		return "it selects no workload"
	}
	for _, pod := range pods {
		if row, ok := c.accessRow(pod.Copy.Service.ID, i.Cluster.Name); !ok || row.Mode == "open" {
			return fmt.Sprintf("it selects %s, which no access policy speaks of", pod.Copy.Service.ID)
		}
	}
	return ""
}

// needlessMeshRule admits a rule for a whole namespace, or mesh, only where something in it is enforced.
func (c *court) needlessMeshRule(o *unstructured.Unstructured, i *Istiod) string {
	for _, pod := range i.Workloads.Pods {
		row, ok := c.accessRow(pod.Copy.Service.ID, i.Cluster.Name)
		if ok && row.Mode != "open" && (pod.Namespace == o.GetNamespace() || o.GetNamespace() == i.Cluster.Mesh.Namespace) {
			return ""
		}
	}
	return "nothing that it covers has an access policy"
}

// judgeOffer looks at everything a cluster's gateway would pass on: only services that a caller elsewhere can
// really send to.
func (c *court) judgeOffer(i *Istiod) {
	if i.Cluster.Gateway == nil {
		return
	}
	for _, pod := range i.Workloads.Gateways {
		proxy := i.GatewayProxy(pod)
		l := proxy.gatewayListener(i.Cluster.Gateway.Port)
		for _, chain := range l.GetFilterChains() {
			name, err := passedTo(chain)
			if err != nil {
				c.out.add(Verdict{Check: "needed", Cluster: i.Cluster.Name, Host: strings.Join(chain.GetFilterChainMatch().GetServerNames(), " "), Expected: "a chain that passes on", Istio: err.Error()})
				continue
			}
			if name == blackHole {
				continue
			}
			endpoints, err := proxy.Endpoints(name)
			if err != nil {
				c.out.add(Verdict{Check: "needed", Cluster: i.Cluster.Name, Host: name, Expected: "endpoints", Istio: err.Error()})
			}
			for _, e := range endpoints {
				if why := c.overOffered(i, e); why != "" {
					c.out.add(Verdict{Check: "needed", Cluster: i.Cluster.Name, Host: name, Expected: "a gateway that offers only what callers elsewhere use", Istio: why})
				}
			}
		}
	}
	for id := range c.receives(i.Cluster.Name) {
		if !c.traces[i.Cluster.Name].received[id] {
			c.out.add(Verdict{Check: "needed", Cluster: i.Cluster.Name, Host: id.String(), Expected: "callers elsewhere reach it through the gateway", Istio: "no request arrives"})
		}
	}
}

func (c *court) overOffered(i *Istiod, e Endpoint) string {
	pod := i.Workloads.PodAt(e.Address)
	if pod == nil || pod.Copy.Service == nil {
		return fmt.Sprintf("it passes on to %s, which is no workload of its cluster", e)
	}
	if !c.traces[i.Cluster.Name].received[pod.Copy.Service.ID] {
		return fmt.Sprintf("it offers %s, and nobody elsewhere sends to it", pod.Copy.Service.ID)
	}
	return ""
}

// receives lists the services that rows of other clusters send to a cluster.
func (c *court) receives(cluster string) map[ServiceID]bool {
	out := map[ServiceID]bool{}
	for _, row := range c.world.Explain {
		if row.Caller.Cluster != cluster && c.istiods[row.Caller.Cluster] != nil && slices.Contains(row.targets(), cluster) {
			out[row.Service] = true
		}
	}
	return out
}
