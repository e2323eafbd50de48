package judge

import (
	"fmt"
	"regexp"
	"strings"

	routepb "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherpb "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
)

// Request is one HTTP request, as a sidecar or a destination sees it.
type Request struct {
	Host    string
	Method  string
	Path    string
	Query   map[string]string
	Headers map[string]string
}

// virtualHost chooses by the Host header: exact, longest suffix wildcard, longest prefix wildcard, catch-all.
func virtualHost(rc *routepb.RouteConfiguration, host string) *routepb.VirtualHost {
	if rc.IgnorePortInHostMatching {
		host, _, _ = strings.Cut(host, ":")
	}
	var best *routepb.VirtualHost
	bestRank := 0
	for _, vh := range rc.VirtualHosts {
		for _, domain := range vh.Domains {
			rank := 0
			switch {
			case domain == "*":
				rank = 1
			case domain == host:
				rank = 1 << 20
			case strings.HasPrefix(domain, "*") && strings.HasSuffix(host, domain[1:]) && len(host) > len(domain)-1:
				rank = 1<<10 + len(domain)
			case strings.HasSuffix(domain, "*") && strings.HasPrefix(host, domain[:len(domain)-1]):
				rank = 1 + len(domain)
			}
			if rank > bestRank {
				best, bestRank = vh, rank
			}
		}
	}
	return best
}

// matchRoute finds the first route that takes the request.
func matchRoute(vh *routepb.VirtualHost, r Request) (*routepb.Route, error) {
	if vh.GetMatcher() != nil {
		return nil, fmt.Errorf("virtual host %s uses a matcher tree", vh.Name)
	}
	for _, route := range vh.Routes {
		ok, err := routeMatches(route.GetMatch(), r)
		if err != nil {
			return nil, fmt.Errorf("virtual host %s, route %s: %w", vh.Name, route.Name, err)
		}
		if ok {
			return route, nil
		}
	}
	return nil, nil
}

func routeMatches(m *routepb.RouteMatch, r Request) (bool, error) {
	if m.GetRuntimeFraction() != nil || m.GetGrpc() != nil || m.GetTlsContext() != nil || len(m.GetDynamicMetadata()) > 0 ||
		len(m.GetFilterState()) > 0 || len(m.GetCookies()) > 0 {
		return false, fmt.Errorf("match %v is not known to this judge", m)
	}
	path := r.Path
	fold := m.GetCaseSensitive() != nil && !m.GetCaseSensitive().GetValue()
	if fold {
		path = strings.ToLower(path)
	}
	lower := func(s string) string {
		if fold {
			return strings.ToLower(s)
		}
		return s
	}
	var ok bool
	switch s := m.GetPathSpecifier().(type) {
	case *routepb.RouteMatch_Prefix:
		ok = strings.HasPrefix(path, lower(s.Prefix))
	case *routepb.RouteMatch_Path:
		ok = path == lower(s.Path)
	case *routepb.RouteMatch_PathSeparatedPrefix:
		ok = path == lower(s.PathSeparatedPrefix) || strings.HasPrefix(path, lower(s.PathSeparatedPrefix)+"/")
	case *routepb.RouteMatch_SafeRegex:
		var err error
		if ok, err = fullMatch(s.SafeRegex.GetRegex(), path); err != nil {
			return false, err
		}
	default:
		return false, fmt.Errorf("path match %T is not known to this judge", s)
	}
	if !ok {
		return false, nil
	}
	for _, h := range m.GetHeaders() {
		if ok, err := headerMatches(h, r); err != nil || !ok {
			return false, err
		}
	}
	for _, q := range m.GetQueryParameters() {
		value, present := r.Query[q.Name]
		switch s := q.GetQueryParameterMatchSpecifier().(type) {
		case *routepb.QueryParameterMatcher_PresentMatch:
			ok = present == s.PresentMatch
		case *routepb.QueryParameterMatcher_StringMatch:
			matches, err := stringMatches(s.StringMatch, value)
			if err != nil {
				return false, err
			}
			ok = present && matches
		default:
			return false, fmt.Errorf("query match %T is not known to this judge", s)
		}
		if !ok {
			return false, nil
		}
	}
	return true, nil
}

// header reads a header or pseudo header of a request.
func (r Request) header(name string) (string, bool) {
	switch name {
	case ":method":
		return r.Method, true
	case ":path":
		return r.Path, true
	case ":authority":
		return r.Host, true
	}
	value, ok := r.Headers[name]
	return value, ok
}

func headerMatches(h *routepb.HeaderMatcher, r Request) (bool, error) {
	value, present := r.header(h.Name)
	if !present && h.TreatMissingHeaderAsEmpty {
		present = true
	}
	var ok bool
	switch s := h.GetHeaderMatchSpecifier().(type) {
	case *routepb.HeaderMatcher_PresentMatch:
		return (present == s.PresentMatch) != h.InvertMatch, nil
	case *routepb.HeaderMatcher_StringMatch:
		var err error
		if ok, err = stringMatches(s.StringMatch, value); err != nil {
			return false, err
		}
	default:
		return false, fmt.Errorf("header match %T is not known to this judge", s)
	}
	// A missing header fails the matcher, inverted or not.
	return present && ok != h.InvertMatch, nil
}

func stringMatches(m *matcherpb.StringMatcher, value string) (bool, error) {
	lower := func(s string) string {
		if m.GetIgnoreCase() {
			return strings.ToLower(s)
		}
		return s
	}
	value = lower(value)
	switch p := m.GetMatchPattern().(type) {
	case *matcherpb.StringMatcher_Exact:
		return value == lower(p.Exact), nil
	case *matcherpb.StringMatcher_Prefix:
		return strings.HasPrefix(value, lower(p.Prefix)), nil
	case *matcherpb.StringMatcher_Suffix:
		return strings.HasSuffix(value, lower(p.Suffix)), nil
	case *matcherpb.StringMatcher_Contains:
		return strings.Contains(value, lower(p.Contains)), nil
	case *matcherpb.StringMatcher_SafeRegex:
		return fullMatch(p.SafeRegex.GetRegex(), value)
	}
	return false, fmt.Errorf("string match %T is not known to this judge", m.GetMatchPattern())
}

func fullMatch(pattern, value string) (bool, error) {
	re, err := regexp.Compile("^(?:" + pattern + ")$")
	if err != nil {
		return false, err
	}
	return re.MatchString(value), nil
}
