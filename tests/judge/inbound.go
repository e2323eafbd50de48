package judge

import (
	"fmt"
	"strings"

	listenerpb "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	rbacpb "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	rbachttp "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	hcmpb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	rbacnet "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/rbac/v3"
	tlspb "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"istio.io/istio/pilot/pkg/model"
)

// Arrival is a call as it reaches the destination's sidecar.
type Arrival struct {
	Port     int    // of the workload
	Identity string // of the client's certificate; empty without mutual TLS
	TLS      bool
	SNI      string
	ALPN     []string
	Request  *Request // nil for a TCP port
}

// Reception is what the destination's sidecar does with a call.
type Reception struct {
	Admitted bool
	Why      string // where it is refused
	Audited  bool   // shadow rules were evaluated
	// Authorized is set once the connection is taken and rules are asked, whatever they say.
	Authorized bool
}

// Receive follows a call through the destination's sidecar.
func (p *Proxy) Receive(a Arrival) (Reception, error) {
	l := namedListener(p.Listeners, model.VirtualInboundListenerName)
	if l == nil {
		return Reception{}, fmt.Errorf("pod %s has no inbound listener", p.Pod.Name)
	}
	chain, err := filterChain(l, connection{address: p.Pod.IP, port: a.Port, tls: a.TLS, sni: a.SNI, alpn: a.ALPN})
	if err != nil {
		return Reception{}, err
	}
	if chain == nil {
		return Reception{Why: fmt.Sprintf("no inbound filter chain for port %d (TLS %t, ALPN %v)", a.Port, a.TLS, a.ALPN)}, nil
	}
	g, err := p.gate(chain)
	if err != nil {
		return Reception{}, err
	}
	if why, err := g.handshake(a); why != "" || err != nil {
		return Reception{Why: why}, err
	}
	return g.authorize(a)
}

// gate is what a filter chain asks of a connection and of its requests.
type gate struct {
	tls         *tlspb.DownstreamTlsContext // nil: plaintext, or TLS that is passed on as it is
	passthrough bool
	http        bool
	connection  []rules
	request     []rules
}

// rules are those of one RBAC filter; shadow rules only log.
type rules struct{ enforced, shadow *rbacpb.RBAC }

// gate reads a filter chain, once.
func (p *Proxy) gate(chain *listenerpb.FilterChain) (*gate, error) {
	if g, ok := p.gates[chain]; ok {
		return g, nil
	}
	g, err := readGate(chain)
	if err != nil {
		return nil, fmt.Errorf("filter chain %s: %w", chain.Name, err)
	}
	p.gates[chain] = g
	return g, nil
}

func readGate(chain *listenerpb.FilterChain) (*gate, error) {
	g := &gate{passthrough: chain.TransportSocket == nil && chain.GetFilterChainMatch().GetTransportProtocol() == "tls"}
	if chain.TransportSocket != nil {
		g.tls = &tlspb.DownstreamTlsContext{}
		if err := chain.TransportSocket.GetTypedConfig().UnmarshalTo(g.tls); err != nil {
			return nil, err
		}
	}
	for _, filter := range chain.Filters {
		if isRBAC(filter.GetTypedConfig(), "network") {
			f := &rbacnet.RBAC{}
			if err := filter.GetTypedConfig().UnmarshalTo(f); err != nil {
				return nil, err
			}
			if f.GetMatcher() != nil || f.GetShadowMatcher() != nil {
				return nil, fmt.Errorf("RBAC with a matcher tree is not known to this judge")
			}
			g.connection = append(g.connection, rules{f.Rules, f.ShadowRules})
		}
		if filter.Name != "envoy.filters.network.http_connection_manager" {
			continue
		}
		g.http = true
		hcm := &hcmpb.HttpConnectionManager{}
		if err := filter.GetTypedConfig().UnmarshalTo(hcm); err != nil {
			return nil, err
		}
		for _, h := range hcm.HttpFilters {
			if !isRBAC(h.GetTypedConfig(), "http") {
				continue
			}
			f := &rbachttp.RBAC{}
			if err := h.GetTypedConfig().UnmarshalTo(f); err != nil {
				return nil, err
			}
			if f.GetMatcher() != nil || f.GetShadowMatcher() != nil {
				return nil, fmt.Errorf("RBAC with a matcher tree is not known to this judge")
			}
			g.request = append(g.request, rules{f.Rules, f.ShadowRules})
		}
	}
	return g, nil
}

func isRBAC(config *anypb.Any, kind string) bool {
	return strings.HasSuffix(config.GetTypeUrl(), "filters."+kind+".rbac.v3.RBAC")
}

// handshake checks the client's certificate as the TLS context does. An empty reason means success.
func (g *gate) handshake(a Arrival) (string, error) {
	switch {
	case g.passthrough && a.TLS:
		return "", nil
	case g.tls == nil && a.TLS:
		return "mutual TLS reaches a plaintext port", nil
	case g.tls == nil:
		return "", nil
	case !a.TLS:
		return "plaintext reaches a TLS port", nil
	case !g.tls.GetRequireClientCertificate().GetValue():
		return "", nil
	case a.Identity == "":
		return "no client certificate", nil
	}
	matchers := g.tls.GetCommonTlsContext().GetCombinedValidationContext().GetDefaultValidationContext().GetMatchSubjectAltNames()
	for _, m := range matchers {
		if ok, err := stringMatches(m, a.Identity); ok || err != nil {
			return "", err
		}
	}
	if len(matchers) == 0 {
		return "", nil
	}
	return "the certificate's trust domain is not accepted", nil
}

// authorize evaluates the RBAC filters, of the connection and of the request.
func (g *gate) authorize(a Arrival) (Reception, error) {
	out := Reception{Admitted: true, Authorized: true}
	at := attempt{principal: a.Identity, port: a.Port, sni: a.SNI}
	if err := out.apply(g.connection, at); err != nil || !out.Admitted || !g.http {
		return out, err
	}
	if a.Request == nil {
		out.Admitted, out.Why = false, "bytes that are not HTTP reach an HTTP port"
		return out, nil
	}
	at.request = a.Request
	return out, out.apply(g.request, at)
}

func (r *Reception) apply(all []rules, at attempt) error {
	for _, one := range all {
		r.Audited = r.Audited || one.shadow != nil
		if one.enforced == nil {
			continue
		}
		ok, err := rbacAdmits(one.enforced, at)
		if err != nil {
			return err
		}
		if !ok {
			r.Admitted, r.Why = false, "refused by "+strings.ToLower(one.enforced.GetAction().String())+" rules"
			return nil
		}
	}
	return nil
}
