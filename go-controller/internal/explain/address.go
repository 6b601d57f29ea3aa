// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/printable"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// Use is what an address is used for.
type Use string

const (
	// InUse means that Services have the address.
	InUse Use = "inUse"
	// Requested means that no Service has the address, and that Services ask for it.
	Requested Use = "requested"
	// ClusterIP means that the address is a cluster IP of a Service: clients outside the cluster have no way to it.
	ClusterIP Use = "clusterIP"
	// Free means that a pool can allocate the address.
	Free Use = "free"
	// Unavailable means that the address is in a pool, which does not allocate it.
	Unavailable Use = "unavailable"
	// NoUse means that the address is of no Service and in no pool.
	NoUse Use = "none"
	// NotKnown means that it is of no Service that could be read.
	NotKnown Use = "unknown"
)

// AddressResult is what an address is used for, and the paths to the Services that it is about.
type AddressResult struct {
	Address string `json:"address"`
	Use     Use    `json:"use"`
	// Pool is the IPAddressPool that contains the address; empty if none does, or if pools could not be read.
	Pool    string `json:"pool,omitempty"`
	Message string `json:"message"`
	// Command is what to type next; empty if there are Services.
	Command  string    `json:"command,omitempty"`
	Services []*Result `json:"services,omitempty"`
	Notes    []string  `json:"notes,omitempty"`
}

// Reachable reports whether Services have the address and all of them are reachable.
func (r *AddressResult) Reachable() bool {
	return r.Use == InUse && !slices.ContainsFunc(r.Services, func(s *Result) bool { return s.Reachable != Yes })
}

// users are the Services that an address is about.
type users struct{ have, request, inside []world.Key }

func (p *path) users(a netip.Addr) (u users) {
	has := func(list []string) bool {
		return slices.ContainsFunc(list, func(text string) bool { return convert.ParseExternalIP(text) == a })
	}
	for _, s := range sorted(p.objects.Services) {
		key := world.Key{Namespace: s.Namespace, Name: s.Name}
		ours := p.serviceOf(key)
		switch {
		case slices.Contains(convert.Assigned(s), a), ours != nil && slices.Contains(ours.HeldExternalIPs, a):
			u.have = append(u.have, key)
		case ours != nil && slices.Contains(ours.Requested, a), has(s.Spec.ExternalIPs):
			u.request = append(u.request, key)
		case has(append([]string{s.Spec.ClusterIP}, s.Spec.ClusterIPs...)):
			u.inside = append(u.inside, key)
		}
	}
	return u
}

// NamespacesOf returns the namespaces of the Services that have an address, each once.
func NamespacesOf(o *objects.Objects, a netip.Addr) []string {
	var all []string
	for _, s := range o.Services {
		if slices.Contains(convert.Assigned(s), a.Unmap()) {
			all = append(all, s.Namespace)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Address answers what an address is used for, and explains the Services that have it. If none has it, it
// explains those that ask for it, or that have it as their cluster IP. The objects have the Services of all namespaces,
// or Unread has "services": then only those of some are among them.
func Address(o *objects.Objects, a netip.Addr, q Question) *AddressResult {
	p := clusterPath(o, q)
	p.computeDecisions()
	a = a.Unmap()
	r := &AddressResult{Address: a.String(), Pool: p.allocation.PoolOf(a)}
	u := p.users(a)
	about := slices.Concat(u.have, u.request, u.inside)
	switch {
	case len(u.have) > 0:
		r.Use, r.Message, about = InUse, "address of "+services(u.have), u.have
	case len(u.request) > 0:
		r.Use, r.Message, about = Requested, "no Service has it; requested by "+services(u.request), u.request
	case len(u.inside) > 0:
		r.Use, r.Message = ClusterIP, "cluster IP of "+services(u.inside)+": clients outside the cluster have no way to it"
	default:
		p.explainUnused(a, r)
	}
	if r.Pool != "" && len(about) > 0 {
		r.Message += "; in pool " + r.Pool
	}
	var paths []*Result
	probes := q.Probes
	for _, key := range about {
		q.Service, q.Address = key, netip.Addr{}
		if len(u.have) > 0 || p.onlyListed(key, a) {
			q.Address = a
		}
		to := Targets(o.Service(key), &q)
		q.Probes = slices.DeleteFunc(slices.Clone(probes), func(seen Probe) bool { return !slices.Contains(to, seen.To) })
		if len(q.Probes) == 0 && len(to) > 0 {
			q.Probes = nil // beyond the limit of AddressTargets
		}
		paths = append(paths, explain(p.to(q)))
	}
	if len(paths) == 0 {
		r.Notes = p.notes()
	}
	if all := len(allAddressTargets(o, a, q)); probes != nil && all > maxTargets {
		r.Notes = append(r.Notes, fmt.Sprintf("%d of %d ports were probed", maxTargets, all))
	}
	printable.Clean(r)
	r.Services = paths
	return r
}

// onlyListed reports whether a Service has other addresses than this one, which it lists in spec.externalIPs and does
// not have.
func (p *path) onlyListed(key world.Key, a netip.Addr) bool {
	ours, assigned := p.serviceOf(key), convert.Assigned(p.objects.Service(key))
	return ours != nil && len(assigned) > 0 && slices.Contains(ours.ExternalIPs, a) &&
		!slices.Contains(slices.Concat(assigned, ours.HeldExternalIPs, ours.Requested), a)
}

// isUnservedExternal reports whether the question is about an address that the Service only lists in spec.externalIPs.
// Nothing after the link of the address is about it, which says why the Service does not have it.
func (p *path) isUnservedExternal() bool {
	if !p.Address.IsValid() || !p.onlyListed(p.Service, p.Address) {
		return false
	}
	link := &p.links[len(p.links)-1]
	if link.Object = p.Address.String(); link.State == OK {
		link.State, link.Reason = Unknown, ReasonNotProcessed
		link.Message = "no condition says why the Service does not have it: the controller may not have seen " +
			"spec.externalIPs yet"
	} else {
		link.State = Broken
	}
	return true
}

// explainUnused says what an address is that no Service has or asks for.
func (p *path) explainUnused(a netip.Addr, r *AddressResult) {
	r.Command = "kubectl slb status   # the pools"
	why := p.allocation.Unavailable(a)
	switch {
	case p.unread("services"):
		r.Use, r.Message = NotKnown, "not the address of a Service that you may read"
		r.Command = "kubectl slb explain NAMESPACE/SERVICE"
	case p.unread("ipaddresspools"):
		r.Use, r.Message = NotKnown, "no Service has it; without IPAddressPools it is not known whether one can get it"
		r.Command = ""
	case r.Pool == "" && why != "":
		r.Use, r.Message = NoUse, "no Service has it, and it is in no pool: "+why
	case r.Pool == "":
		r.Use, r.Message = NoUse, "no Service has it, and it is in no pool"
	case why != "":
		r.Use, r.Message = Unavailable, "no Service has it; in pool "+r.Pool+", which does not allocate it: "+why
		r.Command = printable.Command("kubectl get ipaddresspools.slb.k8s.ovn.org %s -o yaml", r.Pool)
	default:
		r.Use, r.Message = Free, "no Service has it; free in pool "+r.Pool
		r.Command = printable.Command("kubectl -n NAMESPACE annotate service SERVICE "+
			v1alpha1.AnnotationLoadBalancerIPs+"=%s   # to give it to a Service", a.String())
	}
}

// services names Services with their number, if there are several.
func services(keys []world.Key) string {
	if len(keys) == 1 {
		return "Service " + keys[0].String()
	}
	list := make([]string, len(keys))
	for i, key := range keys {
		list[i] = key.String()
	}
	return world.Count(len(list), "Service") + ": " + joined(list)
}

// AddressTargets returns the targets of a probe of all Services that have an address, at most 16 in all. No Service has
// a second one before each of them has one.
func AddressTargets(o *objects.Objects, a netip.Addr, q Question) []netip.AddrPort {
	to := allAddressTargets(o, a, q)
	to = to[:min(maxTargets, len(to))]
	slices.SortFunc(to, netip.AddrPort.Compare)
	return to
}

// allAddressTargets returns the ports of all Services that have an address: the first of each, then the second of each.
func allAddressTargets(o *objects.Objects, a netip.Addr, q Question) (to []netip.AddrPort) {
	q.Address = a.Unmap()
	var left [][]netip.AddrPort
	for _, s := range sorted(o.Services) {
		if list := allTargets(s, &q); len(list) > 0 {
			left = append(left, list)
		}
	}
	seen := map[netip.AddrPort]bool{}
	for len(left) > 0 {
		for i, list := range left {
			if !seen[list[0]] {
				seen[list[0]] = true
				to = append(to, list[0])
			}
			left[i] = list[1:]
		}
		left = slices.DeleteFunc(left, func(list []netip.AddrPort) bool { return len(list) == 0 })
	}
	return to
}

// Text returns the result for readers: what the address is, then each Service as Result.Text does.
func (r *AddressResult) Text(paint Paint, width int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", Wrap(r.Address+": "+r.Message, 2, width))
	if r.Command != "" {
		fmt.Fprintf(&b, "  %s\n", r.Command)
	}
	for _, s := range r.Services {
		fmt.Fprintf(&b, "\n%s", s.Text(paint, width))
	}
	for _, note := range r.Notes {
		fmt.Fprintf(&b, "\n%s\n", Wrap("note: "+note, 0, width))
	}
	return b.String()
}
