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
// family.
func (p *path) asked() []netip.Addr {
	from := p.From.Unmap()
	return slices.DeleteFunc(p.addrs(), func(a netip.Addr) bool { return from.IsValid() && a.Is4() != from.Is4() })
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
	named := slices.DeleteFunc(p.addrs(), func(a netip.Addr) bool { return !mentions(c.Message, a) })
	return len(named) == 0 || slices.ContainsFunc(named, func(a netip.Addr) bool { return slices.Contains(addrs, a) })
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
