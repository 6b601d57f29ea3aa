// SPDX-License-Identifier: Apache-2.0

package frrk8s

import (
	"maps"
	"net/netip"
	"slices"

	"go4.org/netipx"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/frrapi"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// knownPrefixes returns the prefixes of Services, and those in our objects, sorted.
func (r *renderer) knownPrefixes() []netip.Prefix {
	if r.known != nil {
		return r.known
	}
	ours := slices.DeleteFunc(slices.Clone(r.world.FRR.Configurations), func(c *world.FRRConfiguration) bool {
		return c.Peer == ""
	})
	r.known = slices.AppendSeq(slices.Clone(r.layout.Prefixes()), maps.Keys(prefixesOf(ours)))
	slices.SortFunc(r.known, netip.Prefix.Compare)
	r.known = slices.Compact(r.known)
	return r.known
}

// others returns the first maxOthers of the prefixes that a node advertises to a peer, that count, are not known, and
// that no object of others gives it.
func (r *renderer) others(node string, p *world.Peer, counts func(netip.Prefix) bool) []netip.Prefix {
	var out []netip.Prefix
	var theirs map[netip.Prefix]bool
	for prefix, known := range bgp.Compared(r.world.FRR.Running(node, p), r.knownPrefixes()) {
		if known {
			continue
		}
		if theirs == nil {
			theirs = r.foreignPrefixes(node)
		}
		if theirs[prefix] || !counts(prefix) {
			continue
		}
		if out = append(out, prefix); len(out) == maxOthers {
			break
		}
	}
	return out
}

// foreignPrefixes are those that the objects of others for a node have.
type foreignPrefixes struct {
	of       *foreign
	prefixes map[netip.Prefix]bool
}

// foreignPrefixes returns the prefixes that objects of others give a node. Only those of the latest node are kept: they
// are often those of the next one.
func (r *renderer) foreignPrefixes(node string) map[netip.Prefix]bool {
	if is := r.foreignOf(node); r.latest.of != is {
		r.latest = foreignPrefixes{is, map[netip.Prefix]bool{}}
		for _, c := range is.objects {
			for _, prefix := range c.Foreign.Prefixes {
				r.latest.prefixes[prefix] = true
			}
		}
	}
	return r.latest.prefixes
}

// prefixesOf returns the prefixes in objects of ours.
func prefixesOf(objects []*world.FRRConfiguration) map[netip.Prefix]bool {
	out := map[netip.Prefix]bool{}
	for _, c := range objects {
		for _, router := range c.Spec.BGP.Routers {
			for _, text := range router.Prefixes {
				if prefix, valid := frrapi.ParsePrefix(text); valid {
					out[prefix.Masked()] = true
				}
			}
		}
	}
	return out
}

// removeForeignNodes removes the nodes to which objects of others give a prefix.
func (r *renderer) removeForeignNodes(late map[netip.Prefix][]string) {
	for _, c := range r.world.FRR.Configurations {
		if c.Peer != "" {
			continue
		}
		remove := func(prefix netip.Prefix) {
			if nodes := late[prefix]; len(nodes) > 0 {
				late[prefix] = slices.DeleteFunc(slices.Clone(nodes), func(n string) bool {
					_, has := slices.BinarySearch(c.Nodes, n)
					return has
				})
			}
		}
		if len(c.Foreign.Prefixes) < len(late) {
			for _, prefix := range c.Foreign.Prefixes {
				remove(prefix)
			}
			continue
		}
		for prefix := range late {
			if _, has := slices.BinarySearchFunc(c.Foreign.Prefixes, prefix, netip.Prefix.Compare); has {
				remove(prefix)
			}
		}
	}
}

// inPools reports whether a prefix has addresses of pools: FRR can have a session of others with a router that is a
// peer with another backend, whose withdrawals are not ours to watch.
func (r *renderer) inPools(prefix netip.Prefix) bool {
	if r.pools == nil {
		var b netipx.IPSetBuilder
		for _, p := range r.world.Pools {
			for _, is := range p.Ranges {
				b.AddRange(is)
			}
		}
		r.pools, _ = b.IPSet() // The only error is about invalid ranges, and a Pool has none.
	}
	return r.pools.OverlapsPrefix(prefix)
}
