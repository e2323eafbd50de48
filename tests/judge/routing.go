package judge

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// judgeRouting follows every row of the effective fleet from both pods of its caller.
func (c *court) judgeRouting() {
	for _, row := range c.world.Explain {
		istiod := c.istiods[row.Caller.Cluster]
		service := c.world.Fleet.Service(row.Service)
		if c.world.Fleet.Cluster(row.Caller.Cluster) == nil || service == nil {
			c.out.add(Verdict{Check: "routing", Cluster: row.Caller.Cluster, Caller: row.callerName(), Expected: "a row about this fleet", Istio: "no such cluster or service " + row.Service.String()})
			continue
		}
		if istiod == nil {
			continue // a mesh that this judge cannot load
		}
		pods := istiod.Workloads.PodsOf(row.callerID())
		if len(pods) == 0 {
			c.out.add(Verdict{Check: "routing", Cluster: row.Caller.Cluster, Caller: row.callerName(), Expected: "a caller that runs there", Istio: "no such workload"})
		}
		for _, pod := range pods {
			for _, host := range service.Hostnames {
				c.judgeHost(row, service, istiod, pod, host)
			}
		}
	}
}

// judgeHost follows one row for one pod and one name, on every port.
func (c *court) judgeHost(row Row, service *Service, istiod *Istiod, pod *Pod, host string) {
	proxy := istiod.Sidecar(pod)
	serves := len(row.targets()) > 0
	if serves {
		c.traces[istiod.Cluster.Name].dialled[host] = true
	}
	address, err := c.resolve(proxy, host)
	if err != nil {
		if serves && mustResolve(istiod, service, host) {
			c.out.add(Verdict{Check: "names", Cluster: istiod.Cluster.Name, Caller: pod.Name, Host: host, Expected: "a name that resolves", Istio: err.Error()})
		}
		return
	}
	for _, port := range service.Ports {
		requests, shared, err := c.requests(row, host, port)
		if err != nil {
			c.out.add(Verdict{Check: "routing", Cluster: istiod.Cluster.Name, Caller: pod.Name, Host: host, Expected: "a sample request", Istio: err.Error()})
			continue
		}
		for _, request := range requests {
			q := question{row: row, service: service, proxy: proxy, call: Call{Host: host, Address: address, Port: port, Request: request}}
			if serves {
				c.judgeCall(q)
			} else {
				c.judgeNoRoute(q)
			}
		}
		for _, request := range shared {
			if serves {
				c.judgeShared(question{row: row, service: service, proxy: proxy, call: Call{Host: host, Address: address, Port: port, Request: request}})
			}
		}
	}
}

// mustResolve is false for a cluster-local name in a cluster that neither captures DNS nor has the namespace, so
// that no Service can carry the name.
func mustResolve(i *Istiod, s *Service, host string) bool {
	return i.Cluster.Mesh.DNSCapture || !strings.HasSuffix(host, ".svc.cluster.local") || slices.Contains(i.Workloads.Namespaces, s.ID.Namespace)
}

// question is one call, asked for one row.
type question struct {
	row     Row
	service *Service
	proxy   *Proxy
	call    Call
}

func (q question) verdict(check, expected, istio string) Verdict {
	host := fmt.Sprintf("%s:%d", q.call.Host, q.call.Port.Port)
	if q.call.Port.HTTP() {
		host += fmt.Sprintf(" %s %s", q.call.Request.Method, q.call.Request.Path)
		if len(q.call.Request.Headers) > 0 {
			host += fmt.Sprintf(" %v", q.call.Request.Headers)
		}
		if len(q.call.Request.Query) > 0 {
			host += fmt.Sprintf(" ?%v", q.call.Request.Query)
		}
	}
	return Verdict{Check: check, Cluster: q.proxy.Istiod.Cluster.Name, Caller: q.row.callerName() + " (" + q.proxy.Pod.Name + ")", Host: host, Expected: expected, Istio: istio}
}

// requests are samples that fit this row and no other row of the same caller and service.
func (c *court) requests(row Row, host string, port Port) ([]Request, []Request, error) {
	if !port.HTTP() {
		if row.Match != nil {
			return nil, nil, nil // bytes have no headers: only the row without a match speaks of them
		}
		return []Request{{}}, nil, nil
	}
	authority := fmt.Sprintf("%s:%d", host, port.Port)
	var samples []Request
	items := row.Match
	if items == nil {
		items = matchItems{{}, {Path: &textMatch{Exact: ptr("/judge/probe")}}}
	}
	for _, item := range items {
		for _, method := range []string{"GET", "POST"} {
			sample, err := item.sample(authority, method)
			if err != nil {
				return nil, nil, err
			}
			samples = append(samples, sample)
		}
	}
	var out, shared []Request
	for _, sample := range samples {
		other, err := c.fitsAnother(row, sample)
		if err != nil {
			return nil, nil, err
		}
		if other {
			shared = append(shared, sample)
		} else {
			out = append(out, sample)
		}
	}
	both, err := c.sharedRequests(row, authority)
	return out, append(shared, both...), err
}

// sharedRequests are samples that fit the row and another one of the same caller.
func (c *court) sharedRequests(row Row, authority string) ([]Request, error) {
	var out []Request
	for _, other := range c.world.Explain {
		if row.Match == nil || other.Caller != row.Caller || other.Service != row.Service || other.Match == nil || sameMatch(other, row) {
			continue
		}
		for _, a := range row.Match {
			for _, b := range other.Match {
				for _, method := range []string{"GET", "POST"} {
					sample, err := a.and(b).sample(authority, method)
					if err != nil {
						return nil, err
					}
					fits, err := row.Match.admits(sample)
					if err != nil {
						return nil, err
					}
					fitsOther, err := other.Match.admits(sample)
					if err != nil {
						return nil, err
					}
					if fits && fitsOther {
						out = append(out, sample)
					}
				}
			}
		}
	}
	return out, nil
}

// and joins two descriptions; where both speak of one thing, the first one is taken.
func (m matchItem) and(other matchItem) matchItem {
	joined := other
	if m.Path != nil {
		joined.Path = m.Path
	}
	if m.Method != "" {
		joined.Method = m.Method
	}
	joined.Headers, joined.Query = maps.Clone(other.Headers), maps.Clone(other.Query)
	if joined.Headers == nil {
		joined.Headers = m.Headers
	}
	if joined.Query == nil {
		joined.Query = m.Query
	}
	for name, value := range m.Headers {
		joined.Headers[name] = value
	}
	for name, value := range m.Query {
		joined.Query[name] = value
	}
	return joined
}

func (c *court) fitsAnother(row Row, sample Request) (bool, error) {
	for _, other := range c.world.Explain {
		if other.Caller != row.Caller || other.Service != row.Service || other.Match == nil || sameMatch(other, row) {
			continue
		}
		if ok, err := other.Match.admits(sample); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

func sameMatch(a, b Row) bool { return a.Match.text() == b.Match.text() }

// resolve answers as the caller's DNS does.
func (c *court) resolve(p *Proxy, host string) (string, error) {
	cluster := p.Istiod.Cluster
	captured := p.Names[host]
	if cluster.Mesh.DNSCapture && len(captured) > 0 {
		return captured[0], nil
	}
	if ip, ok := p.Istiod.Workloads.ClusterIPs[host]; ok {
		return ip, nil
	}
	if cluster.Mesh.DNSCapture || strings.HasSuffix(host, ".svc.cluster.local") {
		return "", fmt.Errorf("NXDOMAIN")
	}
	// The company's own DNS answers; where the mesh knows an address for the name, with that.
	if len(captured) > 0 {
		return captured[0], nil
	}
	return "198.51.100.1", nil
}

// judgeNoRoute checks that a caller without any candidate is not sent anywhere else. Where other requests of the caller
// are served, these are refused by its own sidecar.
//
// A cluster-local name is left alone for a caller that nobody serves: it keeps the meaning that Kubernetes gives it, so
// that a copy beside the caller answers.
func (c *court) judgeNoRoute(q question) {
	if q.call.Port.HTTP() && c.servesOthers(q.row) {
		const unavailable = 503
		outcome, err := q.proxy.Send(q.call)
		if err != nil || outcome.Answer != unavailable {
			c.out.add(q.verdict("routing", "the sidecar answers 503: other requests of the caller are served", fmt.Sprintf("%v %v", outcome, err)))
		}
		return
	}
	if strings.HasSuffix(q.call.Host, ".svc.cluster.local") {
		return
	}
	outcome, err := q.proxy.Send(q.call)
	if err != nil || outcome.Unknown != "" {
		return
	}
	for _, lane := range outcome.Lanes {
		for _, target := range c.laneTargets(q, lane) {
			c.out.add(q.verdict("routing", "no route: the row has no tier and no share", "reaches "+target.cluster))
		}
	}
}

// servesOthers tells whether other requests of the same caller have somewhere to go.
func (c *court) servesOthers(row Row) bool {
	return slices.ContainsFunc(c.world.Explain, func(other Row) bool {
		return other.Caller == row.Caller && other.Service == row.Service && len(other.targets()) > 0
	})
}

// judgeCall compares the distribution of one call with the row for every set of dead clusters, and follows every
// endpoint that it could ever use.
func (c *court) judgeCall(q question) {
	outcome, err := q.proxy.Send(q.call)
	if err != nil {
		c.out.add(q.verdict("routing", "a route", err.Error()))
		return
	}
	if outcome.Unknown != "" {
		c.out.add(q.verdict("routing", "a route", "the name is not known: "+outcome.Unknown))
		return
	}
	if outcome.Answer != 0 {
		c.out.add(q.verdict("routing", "a route", fmt.Sprintf("the sidecar answers %d", outcome.Answer)))
		return
	}
	c.judgeWeights(q, outcome)
	allowed := q.row.targets()
	lanes := make([]laneTargets, len(outcome.Lanes))
	for i, lane := range outcome.Lanes {
		c.traces[q.proxy.Istiod.Cluster.Name].hosts[hostOf(lane.Cluster)] = true
		lanes[i] = laneTargets{lane, c.laneTargets(q, lane), canEject(q.proxy.Clusters[lane.Cluster])}
		for _, target := range lanes[i].targets {
			if target.cluster != "" && !slices.Contains(allowed, target.cluster) {
				c.out.add(q.verdict("removed", "never "+target.cluster, fmt.Sprintf("%s has endpoint %s of it at priority %d", lane.Cluster, target.endpoint, target.endpoint.Priority)))
			}
			c.judgeDelivery(q, lane, target)
		}
	}
	c.judgeMirrors(q, outcome, q.row.removed())
	c.judgeSettings(q, outcome, lanes, false)
	for _, down := range downSets(c.runsIn(q.service)) {
		have := spread(lanes, down)
		want := q.row.expect(down, true)
		if !want.met(have) && !q.row.expect(down, false).met(have) {
			c.out.add(q.verdict("routing", want.String()+" ("+downNames(down)+")", have.String()))
			break // the first difference says enough
		}
	}
}

// judgeShared follows a request that fits several rows: it gets what each of them sets, which no row says alone, so only
// where it may arrive is judged.
func (c *court) judgeShared(q question) {
	outcome, err := q.proxy.Send(q.call)
	if err != nil || outcome.Unknown != "" {
		c.out.add(q.verdict("routing", "a route", fmt.Sprint(outcome.Unknown, err)))
		return
	}
	var lanes []laneTargets
	for _, lane := range outcome.Lanes {
		c.traces[q.proxy.Istiod.Cluster.Name].hosts[hostOf(lane.Cluster)] = true
		lanes = append(lanes, laneTargets{lane: lane, targets: c.laneTargets(q, lane)})
		for _, target := range lanes[len(lanes)-1].targets {
			c.judgeDelivery(q, lane, target)
		}
	}
	removed, err := c.removedFromAll(q)
	if err != nil {
		c.out.add(q.verdict("removed", "conditions on requests", err.Error()))
		return
	}
	c.judgeMirrors(q, outcome, removed)
	c.judgeSettings(q, outcome, lanes, true)
}

// removedFromAll are the clusters that no copy of a request may reach that fits several rows: those that all of them remove. At
// most one of the policies sets what is excluded, and that holds; its row is the one whose exclusions are not those of the row
// for all other requests.
func (c *court) removedFromAll(q question) ([]string, error) {
	var usual []string
	var fitting []Row
	for _, row := range c.world.Explain {
		if row.Caller != q.row.Caller || row.Service != q.row.Service {
			continue
		}
		if row.Match == nil {
			usual = row.excluded()
			continue
		}
		fits, err := row.Match.admits(q.call.Request)
		if err != nil {
			return nil, err
		}
		if fits {
			fitting = append(fitting, row)
		}
	}
	removed := q.row.removed()
	for _, row := range fitting {
		also := row.removed()
		removed = slices.DeleteFunc(removed, func(cluster string) bool { return !slices.Contains(also, cluster) })
	}
	for _, row := range fitting {
		if excluded := row.excluded(); !slices.Equal(excluded, usual) {
			removed = append(removed, excluded...)
		}
	}
	return removed, nil
}

func (c *court) runsIn(s *Service) []string {
	var out []string
	for _, cluster := range c.world.Fleet.Clusters {
		if _, ok := s.Copies[cluster.Name]; ok {
			out = append(out, cluster.Name)
		}
	}
	return out
}

// judgeWeights wants whole percents: weights that sum to a multiple of 100, so that a share of several clusters
// can be split evenly. Where only shares serve, any proportion will do.
func (c *court) judgeWeights(q question, outcome Outcome) {
	candidates := len(slices.Concat(q.row.Tiers...))
	if len(outcome.Lanes) < 2 || candidates == 0 {
		return
	}
	var sum uint32
	for _, lane := range outcome.Lanes {
		sum += lane.Weight
	}
	if sum%100 != 0 {
		c.out.add(q.verdict("weights", "weights that sum to 100 or a multiple of it", fmt.Sprintf("%d: %v", sum, outcome.Lanes)))
	}
}

// judgeMirrors checks that copies go only where the service runs and the caller may send.
func (c *court) judgeMirrors(q question, outcome Outcome, removed []string) {
	for _, lane := range outcome.Mirrors {
		c.traces[q.proxy.Istiod.Cluster.Name].hosts[hostOf(lane.Cluster)] = true
		for _, target := range c.laneTargets(q, lane) {
			if slices.Contains(removed, target.cluster) {
				c.out.add(q.verdict("removed", "no mirror in "+target.cluster, lane.Cluster+" has endpoint "+target.endpoint.String()))
			}
			c.judgeDelivery(q, lane, target)
		}
	}
}

// laneTargets are the endpoints of a lane and the clusters they stand for.
type laneTargets struct {
	lane    Lane
	targets []target
	inert   error // why dead endpoints stay in use
}

// target is an endpoint and whose it is.
type target struct {
	endpoint Endpoint
	cluster  string
	pods     []*Pod // in the caller's own cluster
	port     int    // of those pods
}

func (c *court) laneTargets(q question, lane Lane) []target {
	endpoints, err := q.proxy.Endpoints(lane.Cluster)
	if err != nil {
		c.out.add(q.verdict("routing", "endpoints", err.Error()))
		return nil
	}
	var out []target
	for _, e := range endpoints {
		t, err := c.owner(q.proxy.Istiod, e)
		if err != nil {
			c.out.add(q.verdict("hops", "an endpoint of this fleet", fmt.Sprintf("%s: %v", lane.Cluster, err)))
		}
		out = append(out, t)
	}
	return out
}

// owner finds whose endpoint it is: a pod of this cluster, the local Service, or another cluster's gateway.
func (c *court) owner(i *Istiod, e Endpoint) (target, error) {
	t := target{endpoint: e}
	if pod := i.Workloads.PodAt(e.Address); pod != nil {
		t.cluster, t.pods, t.port = i.Cluster.Name, []*Pod{pod}, e.Port
		return t, nil
	}
	for _, pod := range i.Workloads.Pods {
		if pod.Copy.FQDN() != e.Address {
			continue
		}
		// Behind the Service's name, kube-proxy picks a pod.
		for _, p := range pod.Copy.Ports {
			if p.Port == e.Port {
				t.cluster, t.port = i.Cluster.Name, p.TargetPort
				t.pods = append(t.pods, pod)
			}
		}
	}
	if t.cluster != "" {
		return t, nil
	}
	for _, other := range c.world.Fleet.Clusters {
		if g := other.Gateway; g != nil && slices.Contains(g.Address, e.Address) && g.Port == e.Port {
			if t.cluster != "" {
				return t, fmt.Errorf("endpoint %s is the gateway of both %s and %s", e, t.cluster, other.Name)
			}
			t.cluster = other.Name
		}
	}
	if t.cluster == i.Cluster.Name {
		return t, fmt.Errorf("endpoint %s is this cluster's own gateway", e)
	}
	if t.cluster == "" {
		return t, fmt.Errorf("endpoint %s belongs to nobody", e)
	}
	return t, nil
}

// spread computes where requests end while some clusters are dead.
func spread(lanes []laneTargets, down map[string]bool) Distribution {
	d := Distribution{By: map[string]float64{}}
	var sum float64
	for _, lane := range lanes {
		sum += float64(lane.lane.Weight)
	}
	for _, lane := range lanes {
		lane.spread(&d, float64(lane.lane.Weight)*100/sum, down)
	}
	return d
}

// spread adds one lane: the lowest priority with a live endpoint serves, if the dead ones can be ejected.
func (l laneTargets) spread(d *Distribution, percent float64, down map[string]bool) {
	lives := func(t target) bool { return t.endpoint.Healthy && !down[t.cluster] }
	var chosen []target
	for _, t := range l.targets {
		if len(chosen) > 0 && t.endpoint.Priority != chosen[0].endpoint.Priority {
			break
		}
		if lives(t) || l.inert != nil {
			chosen = append(chosen, t)
		}
	}
	var sum float64
	for _, t := range chosen {
		sum += t.endpoint.Weight
	}
	if sum == 0 {
		d.Lost += percent
		return
	}
	for _, t := range chosen {
		part := percent * t.endpoint.Weight / sum
		if lives(t) {
			d.By[t.cluster] += part
			continue
		}
		d.Lost += part
		if slices.ContainsFunc(l.targets, lives) {
			d.Why = l.inert.Error()
		}
	}
}

// hostOf reads the host out of the name of an Envoy cluster, of a sidecar ("outbound|8080||host") or of a
// gateway ("outbound_.8080_._.host").
func hostOf(cluster string) string {
	if _, host, ok := strings.Cut(cluster, "_._."); ok {
		return host
	}
	return cluster[strings.LastIndex(cluster, "|")+1:]
}

func ptr[T any](v T) *T { return &v }
