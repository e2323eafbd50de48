package judge

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	routepb "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tcppb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
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
	reachable, err := proxy.reachable()
	if err != nil {
		v.Expected, v.Istio = "routes", err.Error()
		c.out.add(v)
		return
	}
	for _, host := range reachable {
		if !declared[host] && !strings.HasSuffix(host, "."+i.Cluster.Mesh.Namespace+".svc.cluster.local") {
			v.Host, v.Expected, v.Istio = host, fmt.Sprintf("only what it declares: %v", slices.Sorted(maps.Keys(declared))), "the sidecar knows it"
			c.out.add(v)
		}
	}
	for _, d := range pod.Copy.Service.DependsOn {
		called := c.world.Fleet.Service(d.Service)
		if called == nil || !slices.Contains(d.Clusters, i.Cluster.Name) || called.Exposed {
			continue // what is exposed is followed by the rows
		}
		if cp, ok := called.Copies[i.Cluster.Name]; ok && !slices.Contains(reachable, cp.FQDN()) {
			v.Host, v.Expected, v.Istio = cp.FQDN(), "a declared dependency that the sidecar sees", "it does not"
			c.out.add(v)
		}
	}
}

// reachable lists the hosts that a listener or a route of the proxy leads to. Istio also sends clusters of routes
// that are for other callers; nothing leads there.
func (p *Proxy) reachable() ([]string, error) {
	hosts := map[string]bool{}
	for _, rc := range p.Routes() {
		for _, vh := range rc.VirtualHosts {
			for _, route := range vh.Routes {
				for _, name := range routedTo(route) {
					hosts[hostOf(name)] = true
				}
			}
		}
	}
	for _, l := range p.Listeners {
		for _, chain := range append(slices.Clone(l.FilterChains), l.DefaultFilterChain) {
			for _, filter := range chain.GetFilters() {
				if filter.Name != "envoy.filters.network.tcp_proxy" {
					continue
				}
				proxy := &tcppb.TcpProxy{}
				if err := filter.GetTypedConfig().UnmarshalTo(proxy); err != nil {
					return nil, err
				}
				hosts[hostOf(proxy.GetCluster())] = true
				for _, w := range proxy.GetWeightedClusters().GetClusters() {
					hosts[hostOf(w.Name)] = true
				}
			}
		}
	}
	for _, own := range []string{"", passthrough, blackHole, "InboundPassthroughCluster"} {
		delete(hosts, own)
	}
	return slices.Sorted(maps.Keys(hosts)), nil
}

func routedTo(route *routepb.Route) []string {
	var out []string
	if name := route.GetRoute().GetCluster(); name != "" {
		out = append(out, name)
	}
	for _, w := range route.GetRoute().GetWeightedClusters().GetClusters() {
		out = append(out, w.Name)
	}
	return out
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
			requests, shared, err := c.requests(row, host, port)
			if err != nil {
				continue // reported where the row was judged
			}
			for _, request := range append(requests, shared...) {
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
	want := passthrough
	if pod.Copy.Service.Egress == "enforced" {
		want = blackHole
	}
	ports := []Port{{Port: 8080, Protocol: "HTTP"}, {Port: 4321, Protocol: "TCP"}}
	for _, s := range c.world.Fleet.Services {
		ports = append(ports, s.Ports...)
	}
	for _, port := range uniquePorts(ports) {
		outcome, err := i.Sidecar(pod).Send(Call{Host: v.Host, Address: "198.51.100.9", Port: port, Request: Request{Host: v.Host, Method: "GET", Path: "/"}})
		if err != nil {
			v.Istio = err.Error()
		} else {
			v.Istio = outcome.Unknown
		}
		if v.Istio != want {
			v.Expected = fmt.Sprintf("%s (egress %s, port %d %s)", want, pod.Copy.Service.Egress, port.Port, port.Protocol)
			c.out.add(v)
		}
	}
}

// uniquePorts keeps one port of each number and protocol; on a number that is spoken in several ways, what a
// stranger sends is read in only one of them.
func uniquePorts(all []Port) []Port {
	var out []Port
	for _, p := range all {
		if !slices.ContainsFunc(out, func(have Port) bool { return have.Port == p.Port }) {
			out = append(out, Port{Port: p.Port, Protocol: p.Protocol})
		}
	}
	return out
}
