package judge

import (
	"fmt"
	"slices"
	"strings"
)

func (c *court) accessRow(id ServiceID, cluster string) (AccessRow, bool) {
	for _, row := range c.world.Access {
		if row.Service == id && row.Cluster == cluster {
			return row, true
		}
	}
	return AccessRow{}, false
}

// entry finds what is said about one caller. A workload that the matrix does not name is admitted nowhere.
func (r AccessRow) entry(caller Copy) (AccessCaller, bool) {
	for _, e := range r.Callers {
		if e.Caller.Cluster == caller.Cluster.Name && e.Caller.Namespace == caller.Service.ID.Namespace && e.Caller.Service == caller.Service.ID.Name {
			return e, true
		}
	}
	return AccessCaller{}, false
}

// admits tells what the matrix says about one request.
func (r AccessRow) admits(caller Copy, port Port, request *Request) bool {
	if r.Mode != "enforce" {
		return true
	}
	e, ok := r.entry(caller)
	return ok && e.admits(port, request)
}

// routable tells whether at least one request of the caller is admitted.
func (r AccessRow) routable(caller Copy) bool {
	if r.Mode != "enforce" {
		return true
	}
	e, ok := r.entry(caller)
	return ok && e.Allowed
}

func (e AccessCaller) admits(port Port, request *Request) bool {
	if !e.Allowed {
		return false
	}
	return len(e.Rules) == 0 || slices.ContainsFunc(e.Rules, func(rule AccessRule) bool { return rule.admits(port, request) })
}

func (rule AccessRule) admits(port Port, request *Request) bool {
	if len(rule.Ports) > 0 && !slices.Contains(rule.Ports, port.Port) {
		return false
	}
	if len(rule.Methods) == 0 && len(rule.Paths) == 0 {
		return true
	}
	if request == nil {
		return false // bytes have neither
	}
	if len(rule.Methods) > 0 && !slices.Contains(rule.Methods, request.Method) {
		return false
	}
	return len(rule.Paths) == 0 || slices.ContainsFunc(rule.Paths, func(p string) bool { return pathFits(p, request.Path) })
}

// pathFits reads a path of a rule: exact, or with a star at one end.
func pathFits(pattern, path string) bool {
	switch {
	case pattern == "*":
		return true
	case strings.HasSuffix(pattern, "*"):
		return strings.HasPrefix(path, strings.TrimSuffix(pattern, "*"))
	case strings.HasPrefix(pattern, "*"):
		return strings.HasSuffix(path, strings.TrimPrefix(pattern, "*"))
	}
	return pattern == path
}

// judgeAccess asks every called copy about every identity, with probes inside and outside of every rule.
func (c *court) judgeAccess() {
	for _, s := range c.world.Fleet.Services {
		for _, cluster := range c.runsIn(s) {
			if c.istiods[cluster] == nil {
				continue
			}
			row, ok := c.accessRow(s.ID, cluster)
			if !ok {
				c.out.add(Verdict{Check: "access", Cluster: cluster, Host: s.ID.String(), Expected: "an entry of access.json", Istio: "there is none"})
				continue
			}
			c.judgeCopy(row, s.Copies[cluster])
		}
	}
}

func (c *court) judgeCopy(row AccessRow, called Copy) {
	istiod := c.istiods[called.Cluster.Name]
	pods := istiod.Workloads.PodsOf(called.Service.ID)
	proxy := istiod.Sidecar(pods[0])
	audited := false
	for _, base := range called.Service.Ports {
		port, err := called.PortFor(base.Port)
		if err != nil {
			c.out.add(Verdict{Check: "access", Cluster: called.Cluster.Name, Host: called.Service.ID.String(), Expected: "the port", Istio: err.Error()})
			continue
		}
		for _, probe := range row.probes(base) {
			for _, caller := range c.everybody() {
				c.ask(proxy, row, base, port, probe, identity{caller.Identity(), describeCopy(caller)}, row.admits(caller, base, probe), &audited)
			}
			for _, s := range c.strangers(row, called) {
				c.ask(proxy, row, base, port, probe, s, row.Mode != "enforce", &audited)
			}
			for _, s := range c.world.Fleet.alwaysAllowed(called) {
				c.ask(proxy, row, base, port, probe, s, true, &audited)
			}
		}
		c.judgeOutsiders(proxy, row, base, port)
	}
	if row.Mode == "audit" && !audited {
		c.out.add(Verdict{Check: "access", Cluster: called.Cluster.Name, Host: called.Service.ID.String(), Expected: "audit: rules that only log", Istio: "there are none"})
	}
}

type identity struct{ spiffe, name string }

func describeCopy(cp Copy) string { return cp.Service.ID.String() + "@" + cp.Cluster.Name }

// ask compares one answer of a called copy with the expected one.
func (c *court) ask(proxy *Proxy, row AccessRow, base, port Port, probe *Request, who identity, want bool, audited *bool) {
	arrival := Arrival{Port: port.TargetPort, Identity: who.spiffe, TLS: true, ALPN: offeredALPN(nil, base), Request: probe}
	if arrival.ALPN == nil {
		arrival.ALPN = []string{"istio-peer-exchange", "istio"}
	}
	reception, err := proxy.Receive(arrival)
	v := Verdict{Check: "access", Cluster: row.Cluster, Caller: who.name, Host: fmt.Sprintf("%s:%d", row.Service, base.Port)}
	if probe != nil {
		v.Host += " " + probe.Method + " " + probe.Path
	}
	if err != nil {
		v.Expected, v.Istio = "an answer", err.Error()
		c.out.add(v)
		return
	}
	*audited = *audited || reception.Audited
	if reception.Admitted != want {
		v.Expected, v.Istio = fmt.Sprintf("admitted: %t (mode %s)", want, row.Mode), fmt.Sprintf("%t %s", reception.Admitted, reception.Why)
		c.out.add(v)
	}
}

// judgeOutsiders checks whom enforcing mode must refuse whatever the rules say: identities of no trust domain of
// the fleet, and callers without any. Rules over principals would refuse plaintext too, but then everything that
// rests on the connection's secrecy would not hold.
func (c *court) judgeOutsiders(proxy *Proxy, row AccessRow, base, port Port) {
	if row.Mode != "enforce" {
		return
	}
	for _, probe := range row.probes(base) {
		unused := false
		c.ask(proxy, row, base, port, probe, identity{spiffe("outside.example", row.Service.Namespace, row.Service.Name), "an identity of a foreign trust domain"}, false, &unused)
		reception, err := proxy.Receive(Arrival{Port: port.TargetPort, Request: probe})
		if err != nil || reception.Admitted || reception.Authorized {
			c.out.add(Verdict{Check: "access", Cluster: row.Cluster, Caller: "plaintext", Host: fmt.Sprintf("%s:%d", row.Service, base.Port),
				Expected: "refused before anything reads it", Istio: fmt.Sprintf("admitted: %t %s (%v)", reception.Admitted, reception.Why, err)})
		}
	}
}

// probes are requests on every side of the conditions of a copy's rules; one without content for a TCP port.
func (r AccessRow) probes(port Port) []*Request {
	if !port.HTTP() {
		return []*Request{nil}
	}
	methods, paths := []string{"GET", "POST", "PATCH"}, []string{"/", "/judge/probe"}
	for _, e := range r.Callers {
		for _, rule := range e.Rules {
			methods = append(methods, rule.Methods...)
			for _, p := range rule.Paths {
				paths = append(paths, pathSamples(p)...)
			}
		}
	}
	slices.Sort(methods)
	slices.Sort(paths)
	methods, paths = slices.Compact(methods), slices.Compact(paths)
	var out []*Request
	for _, method := range methods {
		for _, path := range paths {
			out = append(out, &Request{Host: "judge.example", Method: method, Path: path})
		}
	}
	return out
}

// pathSamples are paths just inside and just outside of a pattern.
func pathSamples(pattern string) []string {
	body := strings.Trim(pattern, "*")
	switch {
	case body == "":
		return []string{"/", "/inside"}
	case strings.HasSuffix(pattern, "*"):
		return []string{body, body + "inside", "/outside" + body}
	case strings.HasPrefix(pattern, "*"):
		return []string{"/inside" + body, body, "/inside" + body + "/outside"}
	}
	return []string{body, body + "/outside"}
}

// everybody lists every workload of the fleet.
func (c *court) everybody() []Copy {
	var out []Copy
	for _, cluster := range c.world.Fleet.Clusters {
		out = append(out, c.world.Fleet.CopiesIn(cluster.Name)...)
	}
	return out
}

// strangers are identities of the fleet's trust domains that no document admits: unknown accounts in known
// namespaces, and unknown namespaces.
func (c *court) strangers(row AccessRow, called Copy) []identity {
	var out []identity
	for _, cluster := range c.world.Fleet.Clusters {
		for _, namespace := range []string{"judge-nowhere", called.Service.ID.Namespace} {
			if row.Mode == "enforce" && c.world.Fleet.admitsStranger(called, cluster, namespace) {
				continue
			}
			out = append(out, identity{spiffe(cluster.Mesh.TrustDomain, namespace, "judge-stranger"), "an unknown account of " + namespace + " in " + cluster.Name})
		}
	}
	return out
}

// alwaysAllowed lists identities that guardrails admit everywhere.
func (f *Fleet) alwaysAllowed(called Copy) []identity {
	var out []identity
	for _, g := range f.Guards {
		if !contains(called.Service.Labels, g.For) {
			continue
		}
		for _, a := range g.AlwaysAllow {
			from := []*Cluster{called.Cluster}
			for _, name := range a.Clusters {
				from = append(from, f.Cluster(name))
			}
			for _, cluster := range from {
				if a.Namespace != "" && a.ServiceAccount != "" {
					out = append(out, identity{spiffe(cluster.Mesh.TrustDomain, a.Namespace, a.ServiceAccount), "always allowed " + a.Namespace + "/" + a.ServiceAccount + "@" + cluster.Name})
				}
			}
		}
	}
	return out
}

// admitsStranger tells whether a document admits an unknown account: where a rule names a whole namespace, or
// whole clusters. Clusters that share a trust domain, or whose trust domain the called cluster takes for its own,
// cannot be told apart.
func (f *Fleet) admitsStranger(called Copy, cluster *Cluster, namespace string) bool {
	same := func(other *Cluster) bool {
		own := append([]string{called.Cluster.Mesh.TrustDomain}, called.Cluster.Mesh.TrustDomainAliases...)
		return other.Mesh.TrustDomain == cluster.Mesh.TrustDomain ||
			slices.Contains(own, other.Mesh.TrustDomain) && slices.Contains(own, cluster.Mesh.TrustDomain)
	}
	admits := func(a Admission, everywhere bool) bool {
		if a.Dependents || a.Service != "" || a.ServiceAccount != "" || (a.Namespace != "" && a.Namespace != namespace) {
			return false
		}
		for _, other := range f.Clusters {
			within := a.Clusters == nil && (everywhere || other == called.Cluster) || slices.Contains(a.Clusters, other.Name)
			if within && same(other) {
				return true
			}
		}
		return false
	}
	for _, g := range f.Guards {
		if contains(called.Service.Labels, g.For) && slices.ContainsFunc(g.AlwaysAllow, func(a Admission) bool { return admits(a, false) }) {
			return true
		}
	}
	for _, p := range f.Access {
		if p.To != nil && *p.To != called.Service.ID {
			continue
		}
		if slices.ContainsFunc(p.From, func(a Admission) bool { return admits(a, true) }) {
			return true
		}
	}
	return false
}
