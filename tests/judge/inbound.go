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
	if why, err := handshake(chain, a); why != "" || err != nil {
		return Reception{Why: why}, err
	}
	return authorize(chain, a)
}

// handshake checks the client's certificate as the chain's TLS context does. An empty reason means success.
func handshake(chain *listenerpb.FilterChain, a Arrival) (string, error) {
	if chain.TransportSocket == nil {
		if a.TLS && chain.GetFilterChainMatch().GetTransportProtocol() == "tls" {
			return "", nil // passed on as it is
		}
		if a.TLS {
			return "mutual TLS reaches a plaintext port", nil
		}
		return "", nil
	}
	if !a.TLS {
		return "plaintext reaches a TLS port", nil
	}
	context := &tlspb.DownstreamTlsContext{}
	if err := chain.TransportSocket.GetTypedConfig().UnmarshalTo(context); err != nil {
		return "", err
	}
	if !context.GetRequireClientCertificate().GetValue() {
		return "", nil
	}
	if a.Identity == "" {
		return "no client certificate", nil
	}
	matchers := context.GetCommonTlsContext().GetCombinedValidationContext().GetDefaultValidationContext().GetMatchSubjectAltNames()
	for _, m := range matchers {
		ok, err := stringMatches(m, a.Identity)
		if err != nil {
			return "", err
		}
		if ok {
			return "", nil
		}
	}
	if len(matchers) == 0 {
		return "", nil
	}
	return "the certificate's trust domain is not accepted", nil
}

// authorize evaluates the RBAC filters of a chain, of the connection and of the request.
func authorize(chain *listenerpb.FilterChain, a Arrival) (Reception, error) {
	at := attempt{principal: a.Identity, port: a.Port, sni: a.SNI}
	out := Reception{Admitted: true, Authorized: true}
	apply := func(rules, shadow *rbacpb.RBAC) error {
		out.Audited = out.Audited || shadow != nil
		if rules == nil {
			return nil
		}
		ok, err := rbacAdmits(rules, at)
		if err == nil && !ok {
			out.Admitted, out.Why = false, "refused by "+strings.ToLower(rules.GetAction().String())+" rules"
		}
		return err
	}
	for _, filter := range chain.Filters {
		if strings.HasSuffix(filter.GetTypedConfig().GetTypeUrl(), "filters.network.rbac.v3.RBAC") {
			f := &rbacnet.RBAC{}
			if err := filter.GetTypedConfig().UnmarshalTo(f); err != nil {
				return out, err
			}
			if f.GetMatcher() != nil || f.GetShadowMatcher() != nil {
				return out, fmt.Errorf("RBAC with a matcher tree is not known to this judge")
			}
			if err := apply(f.Rules, f.ShadowRules); err != nil || !out.Admitted {
				return out, err
			}
		}
		if filter.Name != "envoy.filters.network.http_connection_manager" {
			continue
		}
		hcm := &hcmpb.HttpConnectionManager{}
		if err := filter.GetTypedConfig().UnmarshalTo(hcm); err != nil {
			return out, err
		}
		at.request = a.Request
		if a.Request == nil {
			out.Admitted, out.Why = false, "bytes that are not HTTP reach an HTTP port"
			return out, nil
		}
		for _, h := range hcm.HttpFilters {
			if !strings.HasSuffix(h.GetTypedConfig().GetTypeUrl(), "filters.http.rbac.v3.RBAC") {
				continue
			}
			f := &rbachttp.RBAC{}
			if err := h.GetTypedConfig().UnmarshalTo(f); err != nil {
				return out, err
			}
			if f.GetMatcher() != nil || f.GetShadowMatcher() != nil {
				return out, fmt.Errorf("RBAC with a matcher tree is not known to this judge")
			}
			if err := apply(f.Rules, f.ShadowRules); err != nil || !out.Admitted {
				return out, err
			}
		}
	}
	return out, nil
}
