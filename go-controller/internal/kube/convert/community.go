// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// Aliases are the names that Community objects give to communities.
type Aliases map[string]community

// community is a community of RFC 1997, with both halves in values[0], or a large community (RFC 8092).
type community struct {
	large  bool
	values [3]uint32
}

// ReadAliases converts all Community objects. It returns the aliases and the findings for each object. If a name is
// defined more than once, the oldest object takes precedence.
func ReadAliases(list []*v1alpha1.Community) (Aliases, map[string][]world.Finding) {
	aliases, owners, findings := Aliases{}, map[string]string{}, map[string][]world.Finding{}
	list = slices.SortedFunc(slices.Values(list), func(a, b *v1alpha1.Community) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for _, o := range list {
		findings[o.Name] = nil
		for _, alias := range o.Spec.Communities {
			c, ok := parseCommunity(alias.Value)
			before, taken := aliases[alias.Name]
			switch {
			case !ok:
				findings[o.Name] = append(findings[o.Name], world.Finding{Reason: v1alpha1.ReasonInvalid, Fatal: true,
					Message: fmt.Sprintf("spec.communities: %s: %q is no community", alias.Name, alias.Value)})
			case taken && before != c:
				findings[o.Name] = append(findings[o.Name], world.Finding{Reason: v1alpha1.ReasonDuplicateName,
					Message: fmt.Sprintf("spec.communities: Community %q, the older one, defines %s otherwise", owners[alias.Name],
						alias.Name)})
			case !taken:
				aliases[alias.Name], owners[alias.Name] = c, o.Name
			}
		}
	}
	return aliases, findings
}

// community parses a community in an advertisement: a value, a well-known name or an alias.
func (a Aliases) community(text string) (community, bool) {
	if c, ok := parseCommunity(text); ok {
		return c, true
	}
	if n, ok := wellKnown(text); ok {
		return community{values: [3]uint32{n}}, true
	}
	c, ok := a[text]
	return c, ok
}

// wellKnown returns the value of a name in IANA's registry of well-known communities.
func wellKnown(name string) (uint32, bool) {
	switch name {
	case "no-export":
		return 0xFFFFFF01, true // RFC 1997
	case "no-advertise":
		return 0xFFFFFF02, true // RFC 1997
	case "no-peer":
		return 0xFFFFFF04, true // RFC 3765
	case "blackhole":
		return 0xFFFF029A, true // RFC 7999
	case "graceful-shutdown":
		return 0xFFFF0000, true // RFC 8326
	}
	return 0, false
}

// parseCommunity parses 65000:100 or large:65000:1:2.
func parseCommunity(text string) (community, bool) {
	parts, bits := strings.Split(text, ":"), 16
	c := community{large: parts[0] == "large"}
	if c.large {
		parts, bits = parts[1:], 32
	}
	if want := 2 + bits/32; len(parts) != want {
		return community{}, false
	}
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 10, bits)
		if err != nil {
			return community{}, false
		}
		c.values[i] = uint32(n)
	}
	if !c.large {
		c.values = [3]uint32{c.values[0]<<16 | c.values[1]}
	}
	return c, true
}
