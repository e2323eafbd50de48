package judge

import (
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"math/rand"
	"slices"
	"strings"
)

// Distribution is where requests end up, in percent by cluster; what no live copy serves is lost.
type Distribution struct {
	By   map[string]float64
	Lost float64
	// Why explains a loss that live copies could have prevented.
	Why string
}

func (d Distribution) String() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(d.By)) {
		if d.By[name] > 0 {
			parts = append(parts, fmt.Sprintf("%s %.4g%%", name, d.By[name]))
		}
	}
	if d.Lost > 1e-9 {
		parts = append(parts, fmt.Sprintf("lost %.4g%%", d.Lost))
	}
	if d.Why != "" {
		parts = append(parts, "("+d.Why+")")
	}
	return strings.Join(parts, ", ")
}

// expectation is what the effective fleet says for one set of dead clusters.
type expectation struct {
	fixed map[string]float64 // shares that their own clusters serve, evenly
	order float64            // what follows the order ...
	tier  []string           // ... and the live clusters of the first live tier, which all get some of it
	loose []string           // the living rest of a share that holds the caller's own cluster: each gets some of it
	share float64            // how much they get together
	lost  float64
	slack float64
}

// expect applies the semantics of shares and tiers. Where one of several clusters of a share is dead, `whole`
// says whether the living rest of the share takes over, or the order does.
func (r Row) expect(down map[string]bool, whole bool) expectation {
	e := expectation{fixed: map[string]float64{}, slack: 1e-6}
	scale, candidates, shared := 1.0, 0, 0
	for _, tier := range r.Tiers {
		candidates += len(tier)
	}
	for _, share := range r.Shares {
		shared += share.Percent
	}
	rest := 100 - float64(shared)
	if candidates == 0 && shared > 0 {
		// Nothing but shares: they serve everything in proportion, which whole weights may have to round.
		scale, rest, e.slack = 100/float64(shared), 0, 1
	}
	for _, share := range r.Shares {
		percent := float64(share.Percent) * scale
		live := alive(share.Clusters, down)
		if whole && len(live) > 0 && len(live) < len(share.Clusters) && slices.Contains(share.Clusters, r.Caller.Cluster) {
			// Own pods and gateways stand in different lanes, so what a dead cluster leaves is not even any more.
			e.loose, e.share = live, percent
			continue
		}
		each := percent / float64(len(share.Clusters))
		if whole && len(live) > 0 {
			each = percent / float64(len(live))
		}
		for _, name := range live {
			e.fixed[name] += each
			percent -= each
		}
		rest += percent
	}
	for _, tier := range r.Tiers {
		if live := alive(tier, down); len(live) > 0 {
			e.tier, e.order = live, rest
			return e
		}
	}
	e.lost = rest
	return e
}

func alive(names []string, down map[string]bool) []string {
	var out []string
	for _, name := range names {
		if !down[name] {
			out = append(out, name)
		}
	}
	return out
}

// met tells whether a distribution is the expected one.
func (e expectation) met(d Distribution) bool {
	const nothing = 1e-6
	sum := 0.0
	for name, have := range d.By {
		extra := have - e.fixed[name]
		most := 0.0
		if slices.Contains(e.tier, name) {
			most += e.order
		}
		if slices.Contains(e.loose, name) {
			most += e.share
		}
		if extra < -e.slack || extra > most+e.slack {
			return false
		}
		sum += extra
	}
	for name, want := range e.fixed {
		if d.By[name] < want-e.slack {
			return false
		}
	}
	for group, amount := range map[*[]string]float64{&e.tier: e.order, &e.loose: e.share} {
		for _, name := range *group {
			if amount > nothing && d.By[name]-e.fixed[name] <= nothing {
				return false
			}
		}
	}
	return math.Abs(sum-e.order-e.share) <= e.slack && math.Abs(d.Lost-e.lost) <= e.slack
}

func (e expectation) String() string {
	parts := []string{}
	for _, name := range slices.Sorted(maps.Keys(e.fixed)) {
		parts = append(parts, fmt.Sprintf("%s %.4g%%", name, e.fixed[name]))
	}
	if e.order > 1e-6 {
		parts = append(parts, fmt.Sprintf("%.4g%% over %v", e.order, e.tier))
	}
	if e.share > 1e-6 {
		parts = append(parts, fmt.Sprintf("%.4g%% over all of %v", e.share, e.loose))
	}
	if e.lost > 1e-6 {
		parts = append(parts, fmt.Sprintf("%.4g%% lost", e.lost))
	}
	return strings.Join(parts, ", ")
}

// everyCombination is the number of clusters up to which all sets of dead clusters are tried.
const everyCombination = 6

// downSets lists the sets of dead clusters to try: all of them for few clusters, else none, each one, all but
// each one, and some at random, the same in every run.
func downSets(clusters []string) []map[string]bool {
	var out []map[string]bool
	if len(clusters) <= everyCombination {
		for bits := range 1 << len(clusters) {
			down := map[string]bool{}
			for i, name := range clusters {
				if bits&(1<<i) != 0 {
					down[name] = true
				}
			}
			out = append(out, down)
		}
		return out
	}
	out = append(out, map[string]bool{})
	for i := range clusters {
		but := map[string]bool{}
		for j, name := range clusters {
			if i != j {
				but[name] = true
			}
		}
		out = append(out, map[string]bool{clusters[i]: true}, but)
	}
	seed := fnv.New64a()
	seed.Write([]byte(strings.Join(clusters, " ")))
	random := rand.New(rand.NewSource(int64(seed.Sum64())))
	for range 32 {
		down := map[string]bool{}
		for _, name := range clusters {
			down[name] = random.Intn(2) == 0
		}
		out = append(out, down)
	}
	return out
}

func downNames(down map[string]bool) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(down)) {
		if down[name] {
			out = append(out, name)
		}
	}
	if out == nil {
		return "nothing down"
	}
	return "down: " + strings.Join(out, " ")
}
