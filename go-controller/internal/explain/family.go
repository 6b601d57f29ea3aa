// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"net/netip"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// asked returns the addresses that the question is about: those to which the client can connect, which are those of its
// family, or the only one.
func (p *path) asked() []netip.Addr {
	return slices.DeleteFunc(p.addrs(), func(a netip.Addr) bool { return !p.about(a) })
}

// about reports whether the question is about an address of the Service.
func (q *Question) about(a netip.Addr) bool {
	from := q.From.Unmap()
	return (!from.IsValid() || a.Is4() == from.Is4()) && (!q.Address.IsValid() || a == q.Address) &&
		(q.family == 0 || world.FamilyOf(a) == q.family)
}

// families returns the answers about the families of the addresses, if they differ and one is yes. A fault of one
// family breaks links of the whole path, and must not look like one of both.
func (p *path) families() []FamilyResult {
	if p.service == nil {
		return nil
	}
	var results []FamilyResult
	for _, f := range []world.Family{world.IPv4, world.IPv6} {
		of := *p
		of.family, of.links, of.remarks, of.layer2, of.byDomain, of.mayLackRows = f, nil, nil, false, nil, false
		if len(of.asked()) == 0 {
			return nil
		}
		of.Probes = slices.DeleteFunc(slices.Clone(p.Probes), func(seen Probe) bool {
			return world.FamilyOf(seen.To.Addr()) != f
		})
		of.addLinks()
		of.addProbes()
		reachable, _ := of.reachability()
		results = append(results, FamilyResult{f.String(), reachable})
	}
	if results[0].Reachable == results[1].Reachable || results[0].Reachable != Yes && results[1].Reachable != Yes {
		return nil
	}
	if results[1].Reachable == Yes {
		slices.Reverse(results)
	}
	return results
}

// familiesText says over which family a Service is reachable, and over which not.
func familiesText(list []FamilyResult) string {
	is := map[string]string{Yes: "reachable", No: "not reachable", Maybe: "not known to be reachable"}
	texts := make([]string, len(list))
	for i, f := range list {
		texts[i] = is[f.Reachable] + " over " + f.Family
	}
	return strings.Join(texts, ", ")
}

// subject names what the question is about, for messages.
func (p *path) subject() string {
	if asked := p.asked(); len(asked) > 0 && len(asked) < len(p.addrs()) {
		return "an " + world.FamilyOf(asked[0]).String() + " address of the Service"
	}
	return "the Service"
}

// concerns reports whether a condition of the Service concerns one of these addresses of it. One that names no address
// concerns all of them. The condition Announced has the first fault only, so that one that concerns other addresses
// shows nothing about these.
func (p *path) concerns(c *metav1.Condition, addrs []netip.Addr) bool {
	named := namedIn(c, p.addrs())
	return len(named) == 0 || slices.ContainsFunc(named, func(a netip.Addr) bool { return slices.Contains(addrs, a) })
}

// namedIn returns those of some addresses that the message of a condition names.
func namedIn(c *metav1.Condition, addrs []netip.Addr) []netip.Addr {
	return slices.DeleteFunc(slices.Clone(addrs), func(a netip.Addr) bool { return !mentions(c.Message, a) })
}

// mentions reports whether a message contains an address.
func mentions(message string, a netip.Addr) bool {
	for word := range strings.FieldsSeq(message) {
		if strings.TrimRight(word, ",;:.") == a.String() {
			return true
		}
	}
	return false
}
