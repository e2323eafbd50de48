// Package judge decides whether rendered mesh configuration does what its intents say, and lets Istio itself
// give the evidence: the objects of every cluster of a fleet are loaded into Istio's own push code, one isolated
// control plane per cluster, and requests are followed hop by hop through the Envoy configuration it generates.
//
// A world is a folder with the intents (fleet), the rendered objects (rendered/<cluster>), what the effective
// fleet is said to be (explain.json) and who is said to be admitted (access.json). The judge reads the intents by
// itself, builds the workloads the fleet would have, and then compares. It knows nothing of the shape that the
// renderer chose: names of objects, markers and helper hosts mean nothing to it, only generated listeners, routes,
// clusters and endpoints do.
//
// Envoy's own behaviour is modelled, not run: which filter chain and route match, that the lowest priority with a
// live endpoint serves, that dead endpoints leave only where outlier detection may eject them, and how RBAC rules
// are evaluated. Whatever the model does not know is an error, never a guess.
package judge
