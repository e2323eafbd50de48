package judge

import (
	"fmt"

	listenerpb "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tcppb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
)

// gatewayListener finds the listener of the gateway's port, if the gateway offers anything.
func (p *Proxy) gatewayListener(port int) *listenerpb.Listener {
	for _, l := range p.Listeners {
		if bound(l, "0.0.0.0", port) {
			return l
		}
	}
	return nil
}

// Forward follows a TLS connection through the east-west gateway, which looks at nothing but SNI and ALPN, and
// returns the name of the Envoy cluster that it is passed on to.
func (p *Proxy) Forward(port int, sni string, alpn []string) (string, error) {
	l := p.gatewayListener(port)
	if l == nil {
		return "", fmt.Errorf("the gateway does not listen on port %d", port)
	}
	chain, err := filterChain(l, connection{address: p.Pod.IP, port: port, tls: true, sni: sni, alpn: alpn})
	if err != nil {
		return "", err
	}
	if chain == nil {
		return "", fmt.Errorf("the gateway knows no SNI %q with ALPN %v", sni, alpn)
	}
	if chain.TransportSocket != nil {
		return "", fmt.Errorf("the gateway terminates TLS for SNI %q", sni)
	}
	g, err := p.gate(chain)
	if err != nil {
		return "", err
	}
	reception, err := g.authorize(Arrival{TLS: true, SNI: sni, Port: port})
	if err != nil {
		return "", err
	}
	if !reception.Admitted {
		return "", fmt.Errorf("the gateway refuses SNI %q: %s", sni, reception.Why)
	}
	return passedTo(chain)
}

func passedTo(chain *listenerpb.FilterChain) (string, error) {
	for _, filter := range chain.Filters {
		if filter.Name != "envoy.filters.network.tcp_proxy" {
			continue
		}
		proxy := &tcppb.TcpProxy{}
		if err := filter.GetTypedConfig().UnmarshalTo(proxy); err != nil {
			return "", err
		}
		if proxy.GetCluster() == "" {
			return "", fmt.Errorf("the gateway spreads a connection over several clusters")
		}
		return proxy.GetCluster(), nil
	}
	return "", fmt.Errorf("the gateway's filter chain %s passes nothing on", chain.Name)
}
