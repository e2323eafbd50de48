package judge

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"

	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerpb "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"istio.io/istio/pilot/pkg/model"
)

// connection is what a listener can see of a connection before it reads a request.
type connection struct {
	address string
	port    int
	tls     bool
	sni     string
	alpn    []string // of TLS, or what the HTTP inspector reads from plaintext
}

// outboundListener finds the listener that captured traffic to an address reaches: its own, the wildcard of the
// port, else the catch-all.
func outboundListener(all []*listenerpb.Listener, c connection) *listenerpb.Listener {
	for _, address := range []string{c.address, "0.0.0.0"} {
		for _, l := range all {
			if bound(l, address, c.port) {
				return l
			}
		}
	}
	return namedListener(all, model.VirtualOutboundListenerName)
}

func namedListener(all []*listenerpb.Listener, name string) *listenerpb.Listener {
	for _, l := range all {
		if l.Name == name {
			return l
		}
	}
	return nil
}

func bound(l *listenerpb.Listener, address string, port int) bool {
	addresses := []*corepb.Address{l.Address}
	for _, extra := range l.AdditionalAddresses {
		addresses = append(addresses, extra.Address)
	}
	return slices.ContainsFunc(addresses, func(a *corepb.Address) bool {
		socket := a.GetSocketAddress()
		return socket.GetAddress() == address && int(socket.GetPortValue()) == port
	})
}

// filterChain chooses as Envoy does: criterion by criterion, the most specific match first, and only chains that
// do not state a criterion where none matches it.
func filterChain(l *listenerpb.Listener, c connection) (*listenerpb.FilterChain, error) {
	if l.GetFilterChainMatcher() != nil {
		return nil, fmt.Errorf("listener %s uses a matcher tree", l.Name)
	}
	transport, protocols := "raw_buffer", c.alpn
	if c.tls && hasListenerFilter(l, "envoy.filters.listener.tls_inspector") {
		transport = "tls"
	}
	if !c.tls && !hasListenerFilter(l, "envoy.filters.listener.http_inspector") {
		protocols = nil
	}
	for _, fc := range l.FilterChains {
		m := fc.GetFilterChainMatch()
		if len(m.GetSourcePrefixRanges()) > 0 || len(m.GetSourcePorts()) > 0 || len(m.GetDirectSourcePrefixRanges()) > 0 ||
			m.GetAddressSuffix() != "" || m.GetSourceType() != listenerpb.FilterChainMatch_ANY {
			return nil, fmt.Errorf("listener %s: chain %s matches on sources", l.Name, fc.Name)
		}
	}
	chains := narrow(l.FilterChains, func(m *listenerpb.FilterChainMatch) (bool, int) {
		return m.GetDestinationPort() != nil, score(int(m.GetDestinationPort().GetValue()) == c.port)
	})
	chains = narrow(chains, func(m *listenerpb.FilterChainMatch) (bool, int) {
		best := 0
		for _, r := range m.GetPrefixRanges() {
			prefix, err := netip.ParsePrefix(fmt.Sprintf("%s/%d", r.AddressPrefix, r.GetPrefixLen().GetValue()))
			address, addressErr := netip.ParseAddr(c.address)
			if err == nil && addressErr == nil && prefix.Contains(address) {
				best = max(best, prefix.Bits()+1)
			}
		}
		return len(m.GetPrefixRanges()) > 0, best
	})
	chains = narrow(chains, func(m *listenerpb.FilterChainMatch) (bool, int) {
		best := 0
		for _, name := range m.GetServerNames() {
			switch {
			case c.tls && name == c.sni:
				best = math.MaxInt
			case c.tls && strings.HasPrefix(name, "*") && strings.HasSuffix(c.sni, name[1:]):
				best = max(best, len(name))
			}
		}
		return len(m.GetServerNames()) > 0, best
	})
	chains = narrow(chains, func(m *listenerpb.FilterChainMatch) (bool, int) {
		return m.GetTransportProtocol() != "", score(m.GetTransportProtocol() == transport)
	})
	chains = narrow(chains, func(m *listenerpb.FilterChainMatch) (bool, int) {
		return len(m.GetApplicationProtocols()) > 0, score(slices.ContainsFunc(m.GetApplicationProtocols(), func(p string) bool { return slices.Contains(protocols, p) }))
	})
	switch {
	case len(chains) > 1:
		return nil, fmt.Errorf("listener %s: %d filter chains match", l.Name, len(chains))
	case len(chains) == 1:
		return chains[0], nil
	case l.DefaultFilterChain != nil:
		return l.DefaultFilterChain, nil
	}
	return nil, nil
}

// narrow keeps the chains that match a criterion best; where none does, those that do not state it.
func narrow(chains []*listenerpb.FilterChain, rank func(*listenerpb.FilterChainMatch) (stated bool, score int)) []*listenerpb.FilterChain {
	var matching, silent []*listenerpb.FilterChain
	best := 0
	for _, fc := range chains {
		stated, s := rank(fc.GetFilterChainMatch())
		switch {
		case !stated:
			silent = append(silent, fc)
		case s > best:
			matching, best = []*listenerpb.FilterChain{fc}, s
		case s == best && s > 0:
			matching = append(matching, fc)
		}
	}
	if matching != nil {
		return matching
	}
	return silent
}

func score(matches bool) int {
	if matches {
		return 1
	}
	return 0
}
