package judge

import (
	"fmt"

	clusterpb "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerpb "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routepb "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmpb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcppb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
)

// Call is what an application sends: to a name, on a port.
type Call struct {
	Host    string
	Address string // what the name resolved to
	Port    Port
	Request Request // of an HTTP port
}

// Outcome is where a sidecar sends a call.
type Outcome struct {
	// Lanes are the weighted Envoy clusters; none if the name is not known to the mesh.
	Lanes []Lane
	// Mirrors are the Envoy clusters that get copies.
	Mirrors []Lane
	// Unknown is set where the sidecar does not know the name: it is passed through or blocked.
	Unknown string
	// Answer is the status that the sidecar answers with by itself, without sending anything on.
	Answer uint32
	// Route is the HTTP route that took the request.
	Route *routepb.Route
}

// Istio's clusters for what the mesh does not know.
const (
	passthrough = "PassthroughCluster"
	blackHole   = "BlackHoleCluster"
)

// Lane is an Envoy cluster and its weight.
type Lane struct {
	Cluster string
	Weight  uint32
}

// Send follows a call through the caller's sidecar, up to the Envoy clusters that it is spread over.
func (p *Proxy) Send(call Call) (Outcome, error) {
	c := connection{address: call.Address, port: call.Port.Port}
	switch call.Port.appProtocol() {
	case "http", "grpc-web":
		c.alpn = []string{"http/1.1"}
	case "http2", "grpc":
		c.alpn = []string{"h2c"}
	case "tls", "https":
		c.tls, c.sni = true, call.Host
	}
	l := outboundListener(p.Listeners, c)
	if l == nil {
		return Outcome{}, fmt.Errorf("no listener for %s:%d", c.address, c.port)
	}
	chain, err := filterChain(l, c)
	if err != nil {
		return Outcome{}, err
	}
	if chain == nil {
		return Outcome{}, fmt.Errorf("listener %s: no filter chain matches", l.Name)
	}
	return p.sendThrough(l, chain, call)
}

func (p *Proxy) sendThrough(l *listenerpb.Listener, chain *listenerpb.FilterChain, call Call) (Outcome, error) {
	for _, filter := range chain.Filters {
		switch filter.Name {
		case "envoy.filters.network.http_connection_manager":
			hcm := &hcmpb.HttpConnectionManager{}
			if err := filter.GetTypedConfig().UnmarshalTo(hcm); err != nil {
				return Outcome{}, err
			}
			if !call.Port.HTTP() {
				return Outcome{}, fmt.Errorf("listener %s reads %s as HTTP", l.Name, call.Port.Protocol)
			}
			return p.sendHTTP(hcm, call)
		case "envoy.filters.network.tcp_proxy":
			proxy := &tcppb.TcpProxy{}
			if err := filter.GetTypedConfig().UnmarshalTo(proxy); err != nil {
				return Outcome{}, err
			}
			return p.sendTCP(proxy, call)
		case "istio.stats", "envoy.filters.network.metadata_exchange", "istio.metadata_exchange":
		default:
			return Outcome{}, fmt.Errorf("listener %s has filter %s, which this judge does not know", l.Name, filter.Name)
		}
	}
	return Outcome{}, fmt.Errorf("listener %s ends without a proxy", l.Name)
}

func (p *Proxy) sendTCP(proxy *tcppb.TcpProxy, call Call) (Outcome, error) {
	switch s := proxy.GetClusterSpecifier().(type) {
	case *tcppb.TcpProxy_Cluster:
		return p.outcome([]Lane{{s.Cluster, 1}}, nil)
	case *tcppb.TcpProxy_WeightedClusters:
		var lanes []Lane
		for _, w := range s.WeightedClusters.Clusters {
			lanes = append(lanes, Lane{w.Name, w.Weight})
		}
		return p.outcome(lanes, nil)
	}
	return Outcome{}, fmt.Errorf("%s:%d: TCP proxy %T is not known to this judge", call.Host, call.Port.Port, proxy.GetClusterSpecifier())
}

func (p *Proxy) sendHTTP(hcm *hcmpb.HttpConnectionManager, call Call) (Outcome, error) {
	rc := hcm.GetRouteConfig()
	if rds := hcm.GetRds(); rds != nil {
		rc = p.Routes()[rds.RouteConfigName]
	}
	if rc == nil {
		return Outcome{}, fmt.Errorf("%s:%d: the listener's routes are missing", call.Host, call.Port.Port)
	}
	vh := virtualHost(rc, call.Request.Host)
	if vh == nil {
		return Outcome{}, fmt.Errorf("no virtual host for %s in %s", call.Request.Host, rc.Name)
	}
	route, err := matchRoute(vh, call.Request)
	if err != nil {
		return Outcome{}, err
	}
	if route == nil {
		return Outcome{}, fmt.Errorf("no route of virtual host %s takes %s %s", vh.Name, call.Request.Method, call.Request.Path)
	}
	action := route.GetRoute()
	if vh.Name == "block_all" {
		return Outcome{Unknown: blackHole, Route: route}, nil // Istio's answer where only known hosts may be reached
	}
	if answer := route.GetDirectResponse(); answer != nil {
		return Outcome{Answer: answer.Status, Route: route}, nil
	}
	if action == nil {
		return Outcome{}, fmt.Errorf("route %s of %s answers by itself: %v", route.Name, vh.Name, route.GetAction())
	}
	var lanes []Lane
	switch s := action.GetClusterSpecifier().(type) {
	case *routepb.RouteAction_Cluster:
		lanes = []Lane{{s.Cluster, 1}}
	case *routepb.RouteAction_WeightedClusters:
		for _, w := range s.WeightedClusters.Clusters {
			lanes = append(lanes, Lane{w.Name, w.GetWeight().GetValue()})
		}
	default:
		return Outcome{}, fmt.Errorf("route %s of %s: %T is not known to this judge", route.Name, vh.Name, s)
	}
	out, err := p.outcome(lanes, route)
	for _, m := range action.GetRequestMirrorPolicies() {
		out.Mirrors = append(out.Mirrors, Lane{m.Cluster, m.GetRuntimeFraction().GetDefaultValue().GetNumerator()})
	}
	return out, err
}

func (p *Proxy) outcome(lanes []Lane, route *routepb.Route) (Outcome, error) {
	out := Outcome{Route: route}
	for _, lane := range lanes {
		switch lane.Cluster {
		case passthrough, blackHole:
			out.Unknown = lane.Cluster
			return out, nil
		}
		c, ok := p.Clusters[lane.Cluster]
		if !ok {
			return out, fmt.Errorf("cluster %s is routed to and does not exist", lane.Cluster)
		}
		if c.GetType() == clusterpb.Cluster_ORIGINAL_DST {
			return out, fmt.Errorf("cluster %s sends to the address that was dialled", lane.Cluster)
		}
	}
	out.Lanes = lanes
	return out, nil
}
