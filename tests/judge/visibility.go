package judge

import (
	"fmt"
	"slices"
	"strings"
)

// judgeVisibility asks from every namespace for every exposed name: where no workload of the namespace may call,
// the name is unknown, or is the local Service and nothing more; where some may, the others reach no cluster that
// none of them may reach.
func (c *court) judgeVisibility() {
	for _, cluster := range c.world.Fleet.Clusters {
		istiod := c.istiods[cluster.Name]
		if istiod == nil {
			continue
		}
		for _, pod := range c.onlookers(istiod) {
			for _, s := range c.world.Fleet.Services {
				if s.Exposed && !c.calls(pod, cluster.Name, s.ID) {
					c.judgeOnlooker(istiod, pod, s)
				}
			}
		}
	}
}

// onlookers are one pod of each workload, and in each namespace, even one the fleet knows nothing of, a stranger.
func (c *court) onlookers(i *Istiod) []*Pod {
	var out []*Pod
	for _, pod := range i.Workloads.Pods {
		if strings.HasSuffix(pod.Name, "-0") {
			out = append(out, pod)
		}
	}
	for n, namespace := range append(slices.Clone(i.Workloads.Namespaces), "judge-nowhere") {
		out = append(out, &Pod{Name: "judge-onlooker", Namespace: namespace, IP: fmt.Sprintf("10.255.0.%d", n+1), Zone: i.Cluster.Zone, Labels: map[string]string{"app": "judge-onlooker"}})
	}
	return out
}

func (c *court) calls(pod *Pod, cluster string, service ServiceID) bool {
	return pod.Copy.Service != nil && slices.ContainsFunc(c.world.Explain, func(r Row) bool {
		return r.Caller.Cluster == cluster && r.callerID() == pod.Copy.Service.ID && r.Service == service
	})
}

func (c *court) judgeOnlooker(i *Istiod, pod *Pod, s *Service) {
	proxy := i.Sidecar(pod)
	allowed, anyone := c.reachFrom(pod.Namespace, i.Cluster.Name, s)
	for _, host := range s.Hostnames {
		v := Verdict{Check: "visibility", Cluster: i.Cluster.Name, Caller: pod.Namespace + "/" + pod.Name, Host: host}
		local := strings.HasSuffix(host, ".svc.cluster.local")
		if ips := proxy.Names[host]; len(ips) > 0 && !anyone && !local {
			v.Expected, v.Istio = "no answer of the sidecar's DNS: nobody in the namespace calls it", strings.Join(ips, " ")
			c.out.add(v)
		}
		address, err := c.resolve(proxy, host)
		if err != nil {
			address = "198.51.100.1"
		}
		for _, port := range s.Ports {
			outcome, err := proxy.Send(Call{Host: host, Address: address, Port: port, Request: Request{Host: fmt.Sprintf("%s:%d", host, port.Port), Method: "GET", Path: "/"}})
			if err != nil || outcome.Unknown != "" {
				continue
			}
			c.judgeLeak(v, proxy, outcome, func(cluster string) bool {
				return slices.Contains(allowed, cluster) || local && cluster == i.Cluster.Name
			}, anyone || local)
		}
	}
}

// reachFrom lists the clusters that callers of a namespace may send to, and whether there are callers.
func (c *court) reachFrom(namespace, cluster string, s *Service) (allowed []string, anyone bool) {
	for _, row := range c.world.Explain {
		if row.Caller.Cluster == cluster && row.Caller.Namespace == namespace && row.Service == s.ID {
			allowed, anyone = append(allowed, row.targets()...), true
		}
	}
	return allowed, anyone
}

func (c *court) judgeLeak(v Verdict, proxy *Proxy, outcome Outcome, allowed func(string) bool, known bool) {
	for _, lane := range outcome.Lanes {
		endpoints, err := proxy.Endpoints(lane.Cluster)
		if err != nil {
			v.Expected, v.Istio = "endpoints", err.Error()
			c.out.add(v)
		}
		if !known {
			v.Expected, v.Istio = "an unknown name: nobody in the namespace calls it", "routed to "+lane.Cluster
			c.out.add(v)
			continue
		}
		for _, e := range endpoints {
			if t, err := c.owner(proxy.Istiod, e); err == nil && !allowed(t.cluster) {
				v.Expected, v.Istio = "no way to "+t.cluster+": no caller of the namespace may use it", lane.Cluster+" has "+e.String()
				c.out.add(v)
			}
		}
	}
}
