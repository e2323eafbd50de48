package judge

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// judgeEgress looks at what the sidecars of workloads with declared egress see: the hosts of their dependencies
// and nothing else, and with enforced egress no way to anything else.
func (c *court) judgeEgress() {
	for _, cluster := range c.world.Fleet.Clusters {
		istiod := c.istiods[cluster.Name]
		if istiod == nil {
			continue
		}
		for _, pod := range istiod.Workloads.Pods {
			if pod.Copy.Service.Egress != "open" {
				c.judgeDeclared(istiod, pod)
			}
			c.judgeUndeclared(istiod, pod)
		}
	}
}

func (c *court) judgeDeclared(i *Istiod, pod *Pod) {
	proxy := i.Sidecar(pod)
	v := Verdict{Check: "egress", Cluster: i.Cluster.Name, Caller: pod.Namespace + "/" + pod.Name}
	declared := c.declaredHosts(proxy, pod)
	for _, host := range proxy.hosts() {
		if !declared[host] && !strings.HasSuffix(host, "."+i.Cluster.Mesh.Namespace+".svc.cluster.local") {
			v.Host, v.Expected, v.Istio = host, fmt.Sprintf("only what it declares: %v", slices.Sorted(maps.Keys(declared))), "the sidecar sees it"
			c.out.add(v)
		}
	}
	for _, d := range pod.Copy.Service.DependsOn {
		called := c.world.Fleet.Service(d.Service)
		if called == nil || !slices.Contains(d.Clusters, i.Cluster.Name) || called.Exposed {
			continue // what is exposed is followed by the rows
		}
		if cp, ok := called.Copies[i.Cluster.Name]; ok && !slices.Contains(proxy.hosts(), cp.FQDN()) {
			v.Host, v.Expected, v.Istio = cp.FQDN(), "a declared dependency that the sidecar sees", "it does not"
			c.out.add(v)
		}
	}
}

// declaredHosts are the names of the dependencies and whatever their requests were seen to use.
func (c *court) declaredHosts(proxy *Proxy, pod *Pod) map[string]bool {
	out := map[string]bool{}
	cluster := proxy.Istiod.Cluster.Name
	for _, d := range pod.Copy.Service.DependsOn {
		called := c.world.Fleet.Service(d.Service)
		if called == nil || !slices.Contains(d.Clusters, cluster) {
			continue
		}
		for _, host := range called.Hostnames {
			out[host] = true
		}
		if cp, ok := called.Copies[cluster]; ok {
			out[cp.FQDN()] = true
		}
	}
	for _, row := range c.world.Explain {
		service := c.world.Fleet.Service(row.Service)
		if row.Caller.Cluster != cluster || row.callerID() != pod.Copy.Service.ID || service == nil {
			continue
		}
		for _, outcome := range c.outcomes(row, service, proxy) {
			for _, lane := range slices.Concat(outcome.Lanes, outcome.Mirrors) {
				out[hostOf(lane.Cluster)] = true
			}
		}
	}
	return out
}

// outcomes sends every sample of a row once more.
func (c *court) outcomes(row Row, service *Service, proxy *Proxy) []Outcome {
	var out []Outcome
	for _, host := range service.Hostnames {
		address, err := c.resolve(proxy, host)
		if err != nil {
			continue
		}
		for _, port := range service.Ports {
			requests, err := c.requests(row, host, port)
			if err != nil {
				continue // reported where the row was judged
			}
			for _, request := range requests {
				if outcome, err := proxy.Send(Call{Host: host, Address: address, Port: port, Request: request}); err == nil {
					out = append(out, outcome)
				}
			}
		}
	}
	return out
}

// judgeUndeclared sends to a host that nobody declares: only enforced egress stops it.
func (c *court) judgeUndeclared(i *Istiod, pod *Pod) {
	v := Verdict{Check: "egress", Cluster: i.Cluster.Name, Caller: pod.Namespace + "/" + pod.Name, Host: "undeclared.judge.example"}
	want := "PassthroughCluster"
	if pod.Copy.Service.Egress == "enforced" {
		want = "BlackHoleCluster"
	}
	for _, port := range []Port{{Port: 8080, Protocol: "HTTP"}, {Port: 4321, Protocol: "TCP"}} {
		outcome, err := i.Sidecar(pod).Send(Call{Host: v.Host, Address: "198.51.100.9", Port: port, Request: Request{Host: v.Host, Method: "GET", Path: "/"}})
		if err != nil {
			v.Istio = err.Error()
		} else {
			v.Istio = outcome.Unknown
		}
		if v.Istio != want {
			v.Expected = fmt.Sprintf("%s (egress %s, port %d)", want, pod.Copy.Service.Egress, port.Port)
			c.out.add(v)
		}
	}
}
