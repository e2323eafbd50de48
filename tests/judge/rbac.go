package judge

import (
	"fmt"
	"maps"
	"slices"

	rbacpb "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
)

// attempt is what an RBAC filter can see of a request.
type attempt struct {
	principal string // SPIFFE identity; empty without a client certificate
	port      int    // of the workload
	sni       string
	request   *Request // nil on a TCP port
}

// rbacAdmits evaluates one filter's enforced rules.
func rbacAdmits(rules *rbacpb.RBAC, a attempt) (bool, error) {
	hit := false
	for _, name := range slices.Sorted(maps.Keys(rules.GetPolicies())) {
		ok, err := policyMatches(rules.Policies[name], a)
		if err != nil {
			return false, fmt.Errorf("policy %s: %w", name, err)
		}
		hit = hit || ok
	}
	switch rules.GetAction() {
	case rbacpb.RBAC_ALLOW:
		return hit, nil
	case rbacpb.RBAC_DENY:
		return !hit, nil
	}
	return false, fmt.Errorf("RBAC action %s is not known to this judge", rules.GetAction())
}

func policyMatches(p *rbacpb.Policy, a attempt) (bool, error) {
	if p.GetCondition() != nil || p.GetCheckedCondition() != nil {
		return false, fmt.Errorf("a CEL condition is not known to this judge")
	}
	permitted, err := anyMatches(p.GetPermissions(), a, permissionMatches)
	if err != nil || !permitted {
		return false, err
	}
	return anyMatches(p.GetPrincipals(), a, principalMatches)
}

func anyMatches[T any](all []T, a attempt, matches func(T, attempt) (bool, error)) (bool, error) {
	for _, one := range all {
		if ok, err := matches(one, a); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

func allMatch[T any](all []T, a attempt, matches func(T, attempt) (bool, error)) (bool, error) {
	for _, one := range all {
		if ok, err := matches(one, a); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

func principalMatches(p *rbacpb.Principal, a attempt) (bool, error) {
	switch x := p.GetIdentifier().(type) {
	case *rbacpb.Principal_Any:
		return x.Any, nil
	case *rbacpb.Principal_AndIds:
		return allMatch(x.AndIds.GetIds(), a, principalMatches)
	case *rbacpb.Principal_OrIds:
		return anyMatches(x.OrIds.GetIds(), a, principalMatches)
	case *rbacpb.Principal_NotId:
		ok, err := principalMatches(x.NotId, a)
		return !ok, err
	case *rbacpb.Principal_Authenticated_:
		if a.principal == "" {
			return false, nil
		}
		if x.Authenticated.GetPrincipalName() == nil {
			return true, nil
		}
		return stringMatches(x.Authenticated.GetPrincipalName(), a.principal)
	case *rbacpb.Principal_FilterState:
		// Istio's newer form of the same question.
		if x.FilterState.GetKey() != "io.istio.peer_principal" {
			return false, fmt.Errorf("filter state %s is not known to this judge", x.FilterState.GetKey())
		}
		if a.principal == "" {
			return false, nil
		}
		return stringMatches(x.FilterState.GetStringMatch(), a.principal)
	}
	return false, fmt.Errorf("principal %T is not known to this judge", p.GetIdentifier())
}

func permissionMatches(p *rbacpb.Permission, a attempt) (bool, error) {
	switch x := p.GetRule().(type) {
	case *rbacpb.Permission_Any:
		return x.Any, nil
	case *rbacpb.Permission_AndRules:
		return allMatch(x.AndRules.GetRules(), a, permissionMatches)
	case *rbacpb.Permission_OrRules:
		return anyMatches(x.OrRules.GetRules(), a, permissionMatches)
	case *rbacpb.Permission_NotRule:
		ok, err := permissionMatches(x.NotRule, a)
		return !ok, err
	case *rbacpb.Permission_DestinationPort:
		return int(x.DestinationPort) == a.port, nil
	case *rbacpb.Permission_RequestedServerName:
		return stringMatches(x.RequestedServerName, a.sni)
	case *rbacpb.Permission_Header:
		if a.request == nil {
			return false, nil
		}
		return headerMatches(x.Header, *a.request)
	case *rbacpb.Permission_UrlPath:
		if a.request == nil {
			return false, nil
		}
		return stringMatches(x.UrlPath.GetPath(), a.request.Path)
	}
	return false, fmt.Errorf("permission %T is not known to this judge", p.GetRule())
}
