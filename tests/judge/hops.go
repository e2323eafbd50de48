package judge

import (
	"fmt"
	"slices"
	"strings"

	tlspb "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
)

// delivery is where a connection to an endpoint ends, or why it does not.
type delivery struct {
	pods []*Pod
	port int
	fail string
}

// judgeDelivery follows a connection to one endpoint up to the destination's answer.
func (c *court) judgeDelivery(q question, lane Lane, t target) {
	if t.cluster == "" {
		return
	}
	d := c.deliver(q, lane, t)
	if d.fail != "" {
		c.out.add(q.verdict("hops", "a way to "+q.service.ID.String()+" in "+t.cluster, d.fail))
		return
	}
	if remote := t.pods == nil; remote {
		c.traces[t.cluster].received[q.service.ID] = true
	}
	for _, pod := range d.pods {
		if fail := c.identity(q, t, pod); fail != "" {
			c.out.add(q.verdict("identity", "a client that accepts exactly the identities of "+q.service.ID.String(), fail))
		}
	}
	c.judgeReception(q, t, d)
}

// deliver finds the destination pods: at once for a pod of this cluster, else through the other cluster's gateway.
func (c *court) deliver(q question, lane Lane, t target) delivery {
	key := strings.Join([]string{q.proxy.Istiod.Cluster.Name, q.proxy.Pod.Namespace, q.proxy.Pod.Name, lane.Cluster, t.endpoint.String(), fmt.Sprint(t.endpoint.Priority)}, " ")
	if d, ok := c.deliveries[key]; ok {
		return d
	}
	d := delivery{pods: t.pods, port: t.port}
	if t.pods == nil {
		d = c.throughGateway(q, t)
	}
	if d.fail == "" {
		d.fail = c.wrongPods(q, t, d)
	}
	c.deliveries[key] = d
	return d
}

func (c *court) throughGateway(q question, t target) delivery {
	if t.endpoint.TLS == nil {
		return delivery{fail: fmt.Sprintf("plaintext to the gateway %s", t.endpoint)}
	}
	istiod := c.istiods[t.cluster]
	if istiod == nil {
		return delivery{fail: "the gateway belongs to a mesh of another type"}
	}
	var d delivery
	for _, gateway := range istiod.Workloads.Gateways {
		proxy := istiod.GatewayProxy(gateway)
		name, err := proxy.Forward(istiod.Cluster.Gateway.Port, t.endpoint.TLS.Sni, offeredALPN(t.endpoint.TLS, q.call.Port))
		if err != nil {
			return delivery{fail: fmt.Sprintf("%s: %v", t.cluster, err)}
		}
		c.traces[t.cluster].hosts[hostOf(name)] = true
		endpoints, err := proxy.Endpoints(name)
		if err != nil {
			return delivery{fail: err.Error()}
		}
		if len(endpoints) == 0 {
			return delivery{fail: fmt.Sprintf("%s: the gateway's %s has no endpoints", t.cluster, name)}
		}
		for _, e := range endpoints {
			pod := istiod.Workloads.PodAt(e.Address)
			if pod == nil || pod.Copy.Service == nil {
				return delivery{fail: fmt.Sprintf("%s: the gateway passes on to %s, which is no pod of its cluster: a loop", t.cluster, e)}
			}
			if e.TLS != nil {
				return delivery{fail: fmt.Sprintf("%s: the gateway wraps the connection to %s in TLS once more", t.cluster, e)}
			}
			d.pods, d.port = append(d.pods, pod), e.Port
		}
	}
	return d
}

// wrongPods checks that the connection ends at the right service and port.
func (c *court) wrongPods(q question, t target, d delivery) string {
	cp, ok := q.service.Copies[t.cluster]
	if !ok {
		return "the service does not run there"
	}
	want, err := cp.PortFor(q.call.Port.Port)
	if err != nil {
		return err.Error()
	}
	if d.port != want.TargetPort {
		return fmt.Sprintf("%s: port %d of the pod, not %d", t.cluster, d.port, want.TargetPort)
	}
	for _, pod := range d.pods {
		if pod.Copy.Service == nil || pod.Copy.Service.ID != q.service.ID {
			return fmt.Sprintf("%s: pod %s/%s of another service", t.cluster, pod.Namespace, pod.Name)
		}
	}
	return ""
}

// identity checks the client's side of the handshake: it must accept the destination's certificate, and no
// certificate of anybody else.
func (c *court) identity(q question, t target, pod *Pod) string {
	if t.endpoint.TLS == nil {
		return "" // within the cluster; the destination decides whether it takes plaintext
	}
	accepted := acceptedNames(t.endpoint.TLS)
	if len(accepted) == 0 {
		return "no names at all, so any workload of the root may answer"
	}
	if !slices.Contains(accepted, pod.Copy.Identity()) {
		return fmt.Sprintf("%v, not %s", accepted, pod.Copy.Identity())
	}
	for _, name := range accepted {
		if !c.isIdentityOf(q.service, name) {
			return name + ", which is not this service"
		}
	}
	return ""
}

func (c *court) isIdentityOf(s *Service, name string) bool {
	for _, cp := range s.Copies {
		// Istio adds the aliases of the local trust domain by itself.
		for _, td := range append([]string{cp.Cluster.Mesh.TrustDomain}, cp.Cluster.Mesh.TrustDomainAliases...) {
			if name == spiffe(td, s.ID.Namespace, cp.Account) {
				return true
			}
		}
	}
	return false
}

func acceptedNames(context *tlspb.UpstreamTlsContext) []string {
	validation := context.GetCommonTlsContext().GetCombinedValidationContext().GetDefaultValidationContext()
	var out []string
	for _, m := range validation.GetMatchTypedSubjectAltNames() {
		out = append(out, m.GetMatcher().GetExact())
	}
	for _, m := range validation.GetMatchSubjectAltNames() {
		out = append(out, m.GetExact())
	}
	return out
}

// offeredALPN is what a client offers. For HTTP the sidecar's ALPN filter replaces the cluster's list.
func offeredALPN(context *tlspb.UpstreamTlsContext, port Port) []string {
	switch port.appProtocol() {
	case "http", "grpc-web":
		return []string{"istio-http/1.1", "istio", "http/1.1"}
	case "http2", "grpc":
		return []string{"istio-h2", "istio", "h2"}
	}
	return context.GetCommonTlsContext().GetAlpnProtocols()
}

// judgeReception checks the destination's side: the certificate, and what its authorization says.
func (c *court) judgeReception(q question, t target, d delivery) {
	istiod := c.istiods[t.cluster]
	caller := q.proxy.Pod.Copy
	arrival := Arrival{Port: d.port}
	if t.endpoint.TLS != nil {
		arrival.TLS, arrival.Identity, arrival.SNI = true, caller.Identity(), t.endpoint.TLS.Sni
		arrival.ALPN = offeredALPN(t.endpoint.TLS, q.call.Port)
	}
	if q.call.Port.HTTP() {
		arrival.Request = &q.call.Request
	}
	row, ok := c.accessRow(q.service.ID, t.cluster)
	if !ok {
		c.out.add(q.verdict("access", "an entry of access.json for "+q.service.ID.String()+" in "+t.cluster, "there is none"))
		return
	}
	want := row.admits(caller, q.call.Port, arrival.Request)
	if !row.routable(caller) {
		c.out.add(q.verdict("access", "no route to a certain refusal", "goes to "+t.cluster+", where access.json admits nothing of this caller"))
	}
	// One pod stands for all of a copy: they have the same labels.
	reception, err := istiod.Sidecar(d.pods[0]).Receive(arrival)
	switch {
	case err != nil:
		c.out.add(q.verdict("access", "an answer of "+t.cluster, err.Error()))
	case reception.Admitted != want:
		c.out.add(q.verdict("access", fmt.Sprintf("admitted in %s: %t", t.cluster, want), fmt.Sprintf("%t %s", reception.Admitted, reception.Why)))
	}
}
