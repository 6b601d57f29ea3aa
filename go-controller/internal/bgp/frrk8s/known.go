// SPDX-License-Identifier: Apache-2.0

package frrk8s

import (
	"maps"
	"net/netip"
	"slices"

	"go4.org/netipx"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
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

// foreignPrefixes are those that some objects have.
type foreignPrefixes struct {
	objects  []*world.FRRConfiguration
	prefixes map[netip.Prefix]bool
}

// foreignPrefixes returns the prefixes that objects of others give a node. Only those of the latest node are kept: they
// are often those of the next one.
func (r *renderer) foreignPrefixes(node string) map[netip.Prefix]bool {
	if r.foreign == nil {
		r.foreign = map[string][]*world.FRRConfiguration{}
		for _, c := range r.world.FRR.Configurations {
			if c.Peer != "" {
				continue
			}
			for _, name := range c.Nodes {
				r.foreign[name] = append(r.foreign[name], c)
			}
		}
	}
	if objects := r.foreign[node]; r.latest.prefixes == nil || !slices.Equal(r.latest.objects, objects) {
		r.latest = foreignPrefixes{objects, prefixesOf(objects)}
	}
	return r.latest.prefixes
}

// prefixesOf returns the prefixes in objects.
func prefixesOf(objects []*world.FRRConfiguration) map[netip.Prefix]bool {
	out := map[netip.Prefix]bool{}
	for _, c := range objects {
		for _, router := range c.Spec.BGP.Routers {
			for _, text := range router.Prefixes {
				if prefix, valid := parsePrefix(text); valid {
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
		for _, router := range c.Spec.BGP.Routers {
			for _, text := range router.Prefixes {
				prefix, _ := parsePrefix(text)
				prefix = prefix.Masked()
				if nodes := late[prefix]; len(nodes) > 0 {
					late[prefix] = slices.DeleteFunc(slices.Clone(nodes), func(n string) bool {
						_, has := slices.BinarySearch(c.Nodes, n)
						return has
					})
				}
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
