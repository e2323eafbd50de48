package judge

import (
	"fmt"
	"math"
	"slices"
	"strings"

	clusterpb "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointpb "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	tlspb "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
)

// Endpoint is one address of an Envoy cluster, with what decides whether it is used and how it is spoken to.
type Endpoint struct {
	Priority uint32
	Address  string
	Port     int
	Weight   float64 // relative to the other endpoints of its priority
	Healthy  bool
	TLS      *tlspb.UpstreamTlsContext // nil: plaintext
}

func (e Endpoint) String() string { return fmt.Sprintf("%s:%d", e.Address, e.Port) }

// Endpoints lists the endpoints of an Envoy cluster, by EDS or inline alike.
func (p *Proxy) Endpoints(name string) ([]Endpoint, error) {
	if found, ok := p.endpoints[name]; ok {
		return found, nil
	}
	c, ok := p.Clusters[name]
	if !ok {
		return nil, fmt.Errorf("the proxy has no cluster %s", name)
	}
	var assignment *endpointpb.ClusterLoadAssignment
	switch c.GetType() {
	case clusterpb.Cluster_EDS:
		assignment = p.loadAssignment(name)
	case clusterpb.Cluster_STRICT_DNS, clusterpb.Cluster_LOGICAL_DNS, clusterpb.Cluster_STATIC:
		assignment = c.LoadAssignment
	default:
		return nil, fmt.Errorf("cluster %s has type %s, which this judge does not know", name, c.GetType())
	}
	out, err := readAssignment(c, assignment)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", name, err)
	}
	p.endpoints[name] = out
	return out, nil
}

func readAssignment(c *clusterpb.Cluster, assignment *endpointpb.ClusterLoadAssignment) ([]Endpoint, error) {
	byLocality := c.GetCommonLbConfig().GetLocalityWeightedLbConfig() != nil
	var out []Endpoint
	for _, group := range assignment.GetEndpoints() {
		var sum float64
		for _, e := range group.LbEndpoints {
			sum += weightOf(e)
		}
		for _, e := range group.LbEndpoints {
			socket := e.GetEndpoint().GetAddress().GetSocketAddress()
			if socket == nil {
				return nil, fmt.Errorf("endpoint %v is not a socket address", e.GetEndpoint().GetAddress())
			}
			weight := weightOf(e)
			if byLocality {
				weight *= float64(group.GetLoadBalancingWeight().GetValue()) / sum
			}
			tls, err := upstreamTLS(c, e)
			if err != nil {
				return nil, err
			}
			out = append(out, Endpoint{Priority: group.Priority, Address: socket.Address, Port: int(socket.GetPortValue()), Weight: weight,
				Healthy: e.HealthStatus == corepb.HealthStatus_UNKNOWN || e.HealthStatus == corepb.HealthStatus_HEALTHY, TLS: tls})
		}
	}
	slices.SortStableFunc(out, func(a, b Endpoint) int {
		if a.Priority != b.Priority {
			return int(a.Priority) - int(b.Priority)
		}
		return strings.Compare(a.String(), b.String())
	})
	return out, nil
}

func weightOf(e *endpointpb.LbEndpoint) float64 {
	if w := e.GetLoadBalancingWeight(); w != nil {
		return float64(w.GetValue())
	}
	return 1
}

// upstreamTLS chooses the transport socket as Envoy does: the first match on the endpoint's metadata, else the
// cluster's own.
func upstreamTLS(c *clusterpb.Cluster, e *endpointpb.LbEndpoint) (*tlspb.UpstreamTlsContext, error) {
	socket := c.TransportSocket
	labels := e.GetMetadata().GetFilterMetadata()["envoy.transport_socket_match"].GetFields()
matches:
	for _, m := range c.TransportSocketMatches {
		for key, want := range m.GetMatch().GetFields() {
			if labels[key].GetStringValue() != want.GetStringValue() {
				continue matches
			}
		}
		socket = m.TransportSocket
		break
	}
	if socket == nil || socket.Name == "envoy.transport_sockets.raw_buffer" {
		return nil, nil
	}
	tls := &tlspb.UpstreamTlsContext{}
	if err := socket.GetTypedConfig().UnmarshalTo(tls); err != nil {
		return nil, fmt.Errorf("transport socket %s: %w", socket.Name, err)
	}
	return tls, nil
}

// canEject tells whether outlier detection may take every endpoint out of this cluster. Without that, a dead
// endpoint keeps its part of the requests and no lower priority is ever used.
func canEject(c *clusterpb.Cluster) error {
	od := c.GetOutlierDetection()
	switch {
	case od == nil:
		return fmt.Errorf("%s has no outlier detection", c.Name)
	case od.GetMaxEjectionPercent() == nil:
		return fmt.Errorf("%s may eject only 10 %% of its endpoints, Envoy's default", c.Name)
	case od.GetMaxEjectionPercent().GetValue() < 100:
		return fmt.Errorf("%s may eject only %d %% of its endpoints", c.Name, od.GetMaxEjectionPercent().GetValue())
	case c.GetCommonLbConfig().GetHealthyPanicThreshold() == nil, c.GetCommonLbConfig().GetHealthyPanicThreshold().GetValue() > 1:
		return fmt.Errorf("%s panics, and then uses dead endpoints", c.Name)
	}
	// Dead endpoints refuse or swallow connections: errors that Envoy counts as gateway errors and 5xx, or, once
	// they are split, as errors of local origin.
	external := max(detector(od.Consecutive_5Xx, od.EnforcingConsecutive_5Xx, 5, 100), detector(od.ConsecutiveGatewayFailure, od.EnforcingConsecutiveGatewayFailure, 5, 0))
	local := detector(od.ConsecutiveLocalOriginFailure, od.EnforcingConsecutiveLocalOriginFailure, 5, 100)
	if od.SplitExternalLocalOriginErrors && local == 0 || !od.SplitExternalLocalOriginErrors && external == 0 {
		return fmt.Errorf("%s has outlier detection that ejects nothing", c.Name)
	}
	return nil
}

type number interface{ GetValue() uint32 }

// detector is 0 where a kind of detection is off. Defaults are Envoy's.
func detector[N interface {
	number
	comparable
}](count, enforcing N, defaultCount, defaultEnforcing uint32) uint32 {
	var unset N
	consecutive, percent := defaultCount, defaultEnforcing
	if count != unset {
		consecutive = count.GetValue()
	}
	if enforcing != unset {
		percent = enforcing.GetValue()
	}
	return min(consecutive, percent)
}

// priorities groups endpoints by priority, most preferred first.
func priorities(all []Endpoint) [][]Endpoint {
	var out [][]Endpoint
	last := uint32(math.MaxUint32)
	for _, e := range all {
		if e.Priority != last {
			out, last = append(out, nil), e.Priority
		}
		out[len(out)-1] = append(out[len(out)-1], e)
	}
	return out
}
