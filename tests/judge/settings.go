package judge

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	clusterpb "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routepb "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	corspb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/cors/v3"
	faultpb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/fault/v3"
	upstreampb "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	typepb "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
)

// TrafficPolicy is read for what it sets on requests and connections; where they go is what explain.json says.
type TrafficPolicy struct {
	Default bool
	From    []Admission
	To      ServiceID
	Match   matchItems
	Settings
}

// Settings are the units of policies that are not about where requests go; a nil one is not set.
type Settings struct {
	Outlier *struct {
		ConsecutiveErrors  *uint32
		Interval, EjectFor string
	}
	Retries *struct {
		Attempts      uint32
		PerTryTimeout string
	}
	Timeout    *string
	Connection *struct{ CrossCluster crossCluster }
	Fault      *struct {
		Delay *struct {
			Percent  *uint32
			Duration string
		}
		Abort *struct {
			Percent *uint32
			Status  uint32
		}
	}
	Mirror *struct {
		Clusters *clusterSet
		Percent  *uint32
	}
	CORS *struct {
		AllowOrigins                              []textMatch
		AllowMethods, AllowHeaders, ExposeHeaders []string
		MaxAge                                    string
		AllowCredentials                          *bool
	}
	Headers *struct{ Request, Response headerChanges }
}

type crossCluster struct {
	ConnectTimeout, IdleTimeout, MaxAge string
	Keepalive                           *struct {
		Idle, Interval string
		Probes         uint32
	}
}

type headerChanges struct {
	Set, Add map[string]string
	Remove   []string
}

// overlay takes over what another policy sets.
func (s *Settings) overlay(o Settings) {
	take(&s.Outlier, o.Outlier)
	take(&s.Retries, o.Retries)
	take(&s.Timeout, o.Timeout)
	take(&s.Connection, o.Connection)
	take(&s.Fault, o.Fault)
	take(&s.Mirror, o.Mirror)
	take(&s.CORS, o.CORS)
	take(&s.Headers, o.Headers)
}

func take[T any](to **T, from *T) {
	if from != nil {
		*to = from
	}
}

// settingsOf merges what holds for a request: the default, policies about all requests of the caller, and those whose
// match the request fits.
func (f *Fleet) settingsOf(row Row, port Port, request Request) (Settings, error) {
	var out Settings
	for _, p := range f.Traffic {
		if p.Default {
			out.overlay(p.Settings)
		}
	}
	for _, matched := range []bool{false, true} {
		for _, p := range f.Traffic {
			if p.Default || p.To != row.Service || (p.Match != nil) != matched || !p.about(row) {
				continue
			}
			if matched {
				if !port.HTTP() {
					continue
				}
				fits, err := p.Match.admits(request)
				if err != nil {
					return out, err
				}
				if !fits {
					continue
				}
			}
			out.overlay(p.Settings)
		}
	}
	return out, nil
}

func (p TrafficPolicy) about(row Row) bool {
	return p.From == nil || slices.ContainsFunc(p.From, func(a Admission) bool {
		return (a.Service == "" || a.Service == row.Caller.Service) &&
			(a.Namespace == "" || a.Namespace == row.Caller.Namespace) &&
			(a.Clusters == nil || slices.Contains(a.Clusters, row.Caller.Cluster))
	})
}

// difference is one setting that Istio does not have as it is written.
type difference struct{ what, want, have string }

// differences collects them.
type differences []difference

func (d *differences) compare(what string, want, have any) {
	if w, h := fmt.Sprint(want), fmt.Sprint(have); w != h {
		*d = append(*d, difference{what, w, h})
	}
}

// judgeSettings compares what the policies set for a request with the route and the Envoy clusters that it meets.
//
// A request that fits several rows may be kept from clusters by each of them, so where its copies go is not judged.
func (c *court) judgeSettings(q question, outcome Outcome, lanes []laneTargets, shared bool) {
	want, err := c.world.Fleet.settingsOf(q.row, q.call.Port, q.call.Request)
	if err != nil {
		c.out.add(q.verdict("settings", "settings", err.Error()))
		return
	}
	var found differences
	if q.call.Port.HTTP() && outcome.Route.GetRoute() != nil {
		found.route(want, q.call, outcome.Route)
		if !shared {
			c.mirror(&found, want, q, outcome)
		}
	}
	for _, lane := range lanes {
		found.cluster(want, q, lane)
	}
	for _, d := range found {
		c.out.add(q.verdict("settings", d.what+" "+d.want, d.have))
	}
}

// repeatable methods may be sent twice (RFC 9110 section 9.2.2).
var repeatable = []string{"DELETE", "GET", "HEAD", "OPTIONS", "PUT", "TRACE"}

// unbegun are the failures after which nobody has begun to work on a request, and the statuses that gRPC has for that.
// The last two are what Istio adds where no retries are written; without codes, the very last one means nothing.
var unbegun = []string{"connect-failure", "refused-stream", "reset-before-request", "unavailable", "cancelled", "retriable-status-codes"}

func (d *differences) route(want Settings, call Call, route *routepb.Route) {
	action := route.GetRoute()
	timeout := "0s"
	if want.Timeout != nil {
		timeout = *want.Timeout
	}
	d.compare("timeout", duration(timeout), action.GetTimeout().AsDuration())

	attempts, perTry := uint32(2), ""
	if want.Retries != nil {
		attempts, perTry = want.Retries.Attempts, want.Retries.PerTryTimeout
	}
	policy := action.GetRetryPolicy()
	d.compare("retries", attempts, policy.GetNumRetries().GetValue())
	if attempts > 0 {
		d.compare("time of each try", duration(perTry), policy.GetPerTryTimeout().AsDuration())
		if !slices.Contains(repeatable, call.Request.Method) {
			on := slices.DeleteFunc(strings.Split(policy.GetRetryOn(), ","), func(on string) bool { return slices.Contains(unbegun, on) })
			d.compare("a request that may not be sent twice is tried again after", "[] []", fmt.Sprint(on, policy.GetRetriableStatusCodes()))
		}
	}
	d.fault(want, route.GetTypedPerFilterConfig()["envoy.filters.http.fault"])
	d.cors(want, route.GetTypedPerFilterConfig()["envoy.filters.http.cors"])
	var headers struct{ Request, Response headerChanges }
	if want.Headers != nil {
		headers = *want.Headers
	}
	d.compare("request headers", headers.Request.text(), changes(route.GetRequestHeadersToAdd(), route.GetRequestHeadersToRemove()))
	d.compare("response headers", headers.Response.text(), changes(route.GetResponseHeadersToAdd(), route.GetResponseHeadersToRemove()))
}

func (d *differences) fault(want Settings, config *anypb.Any) {
	have := &faultpb.HTTPFault{}
	d.decode("fault", config, have)
	delay, abort := "", ""
	if want.Fault != nil && want.Fault.Delay != nil {
		delay = fmt.Sprintf("%v %v", percentOf(want.Fault.Delay.Percent), duration(want.Fault.Delay.Duration))
	}
	if want.Fault != nil && want.Fault.Abort != nil {
		abort = fmt.Sprintf("%v %d", percentOf(want.Fault.Abort.Percent), want.Fault.Abort.Status)
	}
	haveDelay, haveAbort := "", ""
	if have.Delay != nil {
		haveDelay = fmt.Sprintf("%v %v", fraction(have.Delay.Percentage), have.Delay.GetFixedDelay().AsDuration())
	}
	if have.Abort != nil {
		haveAbort = fmt.Sprintf("%v %d", fraction(have.Abort.Percentage), have.Abort.GetHttpStatus())
	}
	d.compare("delay", delay, haveDelay)
	d.compare("abort", abort, haveAbort)
}

func (d *differences) cors(want Settings, config *anypb.Any) {
	d.compare("CORS", want.CORS != nil, config != nil)
	if want.CORS == nil || config == nil {
		return
	}
	have := &corspb.CorsPolicy{}
	d.decode("CORS", config, have)
	age := ""
	if want.CORS.MaxAge != "" {
		age = fmt.Sprint(int(duration(want.CORS.MaxAge).Seconds()))
	}
	d.compare("CORS", []any{strings.Join(want.CORS.AllowMethods, ","), strings.Join(want.CORS.AllowHeaders, ","), strings.Join(want.CORS.ExposeHeaders, ","),
		age, want.CORS.AllowCredentials != nil && *want.CORS.AllowCredentials, len(want.CORS.AllowOrigins)},
		[]any{have.AllowMethods, have.AllowHeaders, have.ExposeHeaders, have.MaxAge, have.AllowCredentials.GetValue(), len(have.AllowOriginStringMatch)})
	for _, origin := range want.CORS.AllowOrigins {
		sample, err := origin.sample()
		admitted := false
		for _, m := range have.AllowOriginStringMatch {
			ok, matchErr := stringMatches(m, sample)
			admitted = admitted || ok && matchErr == nil
		}
		d.compare("CORS admits "+sample, true, admitted && err == nil)
	}
}

func (d *differences) decode(what string, config *anypb.Any, into proto.Message) {
	if config != nil {
		if err := config.UnmarshalTo(into); err != nil {
			d.compare(what, "known settings", err)
		}
	}
}

// mirror wants copies in all clusters of the set that may be reached, as many as the policy says.
func (c *court) mirror(d *differences, want Settings, q question, outcome Outcome) {
	meant := map[string]bool{}
	percent := 100.0
	if want.Mirror != nil {
		percent = percentOf(want.Mirror.Percent)
		for _, name := range want.Mirror.Clusters.in(c.world.Fleet) {
			if _, runs := q.service.Copies[name]; runs && c.mayReach(q.row, name) {
				meant[name] = true
			}
		}
	}
	have := map[string]bool{}
	for _, mirror := range outcome.Route.GetRoute().GetRequestMirrorPolicies() {
		d.compare("mirrored percentage", percent, fraction(mirror.GetRuntimeFraction().GetDefaultValue()))
		for _, target := range c.laneTargets(q, Lane{mirror.Cluster, 1}) {
			have[target.cluster] = true
		}
	}
	d.compare("mirrors in", slices.Sorted(maps.Keys(meant)), slices.Sorted(maps.Keys(have)))
}

// mayReach is false for clusters that are removed for another reason than the order, and for the caller's own drained
// cluster where another one can serve.
func (c *court) mayReach(row Row, cluster string) bool {
	if slices.Contains(row.removed(), cluster) {
		return false
	}
	others := slices.ContainsFunc(slices.Concat(row.Tiers...), func(name string) bool { return name != cluster })
	return cluster != row.Caller.Cluster || !c.world.Fleet.Cluster(cluster).Drain || !others
}

// cluster compares what holds for connections, and when an endpoint counts as broken.
func (d *differences) cluster(want Settings, q question, lane laneTargets) {
	have := q.proxy.Clusters[lane.lane.Cluster]
	remote, clusters := false, map[string]bool{}
	for _, t := range lane.targets {
		clusters[t.cluster] = true
		remote = remote || t.cluster != q.row.Caller.Cluster
	}
	if od := have.GetOutlierDetection(); want.Outlier != nil || len(clusters) > 1 {
		errors, interval, eject := uint32(5), "5s", "30s"
		if want.Outlier != nil {
			if want.Outlier.ConsecutiveErrors != nil {
				errors = *want.Outlier.ConsecutiveErrors
			}
			setIf(&interval, want.Outlier.Interval)
			setIf(&eject, want.Outlier.EjectFor)
		}
		counted := max(detector(od.GetConsecutive_5Xx(), od.GetEnforcingConsecutive_5Xx(), 5, 100), od.GetConsecutiveGatewayFailure().GetValue())
		d.compare("outlier detection", []any{errors, duration(interval), duration(eject)},
			[]any{counted, od.GetInterval().AsDuration(), od.GetBaseEjectionTime().AsDuration()})
	}
	var connection crossCluster
	if want.Connection != nil && remote {
		connection = want.Connection.CrossCluster
	}
	setDefault(&connection.ConnectTimeout, "10s") // Istio's own
	d.compare("connect timeout", duration(connection.ConnectTimeout), have.GetConnectTimeout().AsDuration())
	keepalive := have.GetUpstreamConnectionOptions().GetTcpKeepalive()
	if k := connection.Keepalive; k != nil {
		d.compare("keepalive", []any{duration(k.Idle).Seconds(), duration(k.Interval).Seconds(), k.Probes},
			[]any{float64(keepalive.GetKeepaliveTime().GetValue()), float64(keepalive.GetKeepaliveInterval().GetValue()), keepalive.GetKeepaliveProbes().GetValue()})
	} else {
		d.compare("keepalive", false, keepalive != nil)
	}
	idle, age := httpOptions(have)
	d.compare("idle timeout", duration(connection.IdleTimeout), idle.AsDuration())
	d.compare("age of connections", duration(connection.MaxAge), age.AsDuration())
}

// httpOptions are the times that Istio writes for connections of an Envoy cluster, whatever is spoken on them.
func httpOptions(c *clusterpb.Cluster) (idle, age *durationpb.Duration) {
	options := &upstreampb.HttpProtocolOptions{}
	config := c.GetTypedExtensionProtocolOptions()["envoy.extensions.upstreams.http.v3.HttpProtocolOptions"]
	if config == nil || config.UnmarshalTo(options) != nil {
		return nil, nil
	}
	common := options.GetCommonHttpProtocolOptions()
	return common.GetIdleTimeout(), common.GetMaxConnectionDuration()
}

func (h headerChanges) text() string {
	var out []string
	for name, value := range h.Set {
		out = append(out, strings.ToLower(name)+"="+value)
	}
	for name, value := range h.Add {
		out = append(out, strings.ToLower(name)+"+="+value)
	}
	for _, name := range h.Remove {
		out = append(out, "-"+strings.ToLower(name))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func changes(options []*corepb.HeaderValueOption, remove []string) string {
	h := headerChanges{Set: map[string]string{}, Add: map[string]string{}, Remove: remove}
	for _, o := range options {
		if o.GetAppendAction() == corepb.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD {
			h.Set[o.GetHeader().GetKey()] = literal(o.GetHeader().GetValue())
		} else {
			h.Add[o.GetHeader().GetKey()] = literal(o.GetHeader().GetValue())
		}
	}
	return h.text()
}

// literal is the text that Envoy makes of a header's value; what it would fill in is nothing that a document says.
func literal(value string) string {
	const escaped = "\x00"
	return strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(value, "%%", escaped), "%", "(filled in)"), escaped, "%")
}

// percentOf fills in what an absent percentage means.
func percentOf(percent *uint32) float64 {
	if percent == nil {
		return 100
	}
	return float64(*percent)
}

func fraction(p *typepb.FractionalPercent) float64 {
	switch p.GetDenominator() {
	case typepb.FractionalPercent_TEN_THOUSAND:
		return float64(p.GetNumerator()) / 100
	case typepb.FractionalPercent_MILLION:
		return float64(p.GetNumerator()) / 10000
	}
	return float64(p.GetNumerator())
}

// duration reads a text such as 2s or 250ms; none is no time at all.
func duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil && text != "" {
		return -1
	}
	return d
}
