// SPDX-License-Identifier: Apache-2.0

package metallb

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// wellKnown are the names that a BGPAdvertisement can use without a Community, and their values (RFC 1997, RFC 3765,
// RFC 7999, RFC 8326).
func wellKnown() map[string]string {
	return map[string]string{"no-export": "65535:65281", "no-advertise": "65535:65282", "no-peer": "65535:65284",
		"blackhole": "65535:666", "graceful-shutdown": "65535:0"}
}

// convertCommunities converts Communities. It returns the name that each of MetalLB's names has in BGPAdvertisements.
// Names are lower case, and well-known names can't be redefined.
func (c *conversion) convertCommunities() map[string]string {
	names := map[string]string{}
	taken := wellKnown()
	for _, o := range c.source.communities {
		out := &v1alpha1.Community{TypeMeta: typeMeta(kindCommunity), ObjectMeta: meta(o, nil)}
		names, taken := names, taken
		if o.incomplete { // its aliases are not defined
			names, taken = maps.Clone(names), maps.Clone(taken)
		}
		for _, alias := range o.spec.Communities {
			if name, ok := c.alias(o, &alias, names, taken); ok {
				out.Spec.Communities = append(out.Spec.Communities, v1alpha1.CommunityAlias{Name: name, Value: alias.Value})
			}
		}
		if len(out.Spec.Communities) > 0 && c.accept(o.String(), out) && !o.incomplete {
			c.objects = append(c.objects, out)
		}
	}
	for _, o := range c.existing.communities {
		for _, alias := range o.Spec.Communities {
			if names[alias.Name] == "" {
				names[alias.Name] = alias.Name
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(wellKnown())) {
		if _, defined := names[name]; !defined {
			names[name] = name
		}
	}
	return names
}

// alias returns the name of one alias, and sets the value in the form of the CRD. It returns false if the alias needs
// no definition, or can't have one.
func (c *conversion) alias(o *community, alias *communityAlias, names, taken map[string]string) (string, bool) {
	const field = "spec.communities"
	value, ok := c.community(o.String(), field, alias.Value)
	if !ok {
		return "", false
	}
	alias.Value = value
	if _, twice := names[alias.Name]; twice {
		c.add(Error, o.String(), field, "%s is defined twice", alias.Name)
		return "", false
	}
	name := aliasName(alias.Name)
	if value := wellKnown()[name]; value == alias.Value {
		names[alias.Name] = name
		c.add(Note, o.String(), field, "%s is the well-known community %s and needs no definition", alias.Name, name)
		return "", false
	}
	if taken[name] != "" && taken[name] != alias.Value {
		name = aliasName("metallb-" + name)
	}
	if value := taken[name]; value != "" {
		names[alias.Name] = name
		if value != alias.Value {
			c.add(Error, o.String(), field, "%s becomes %s, which has the value %s already", alias.Name, name, value)
		}
		return "", false
	}
	if name == "" {
		c.add(Error, o.String(), field, "%q is no name: it has no letter", alias.Name)
		return "", false
	}
	if name != alias.Name {
		c.add(Note, o.String(), field, "%s is named %s, here and in BGPAdvertisements", alias.Name, name)
	}
	names[alias.Name], taken[name] = name, alias.Value
	return name, true
}

// aliasName returns a name in the form of the CRD: lower-case letters, digits and dashes, beginning with a letter.
func aliasName(name string) string {
	name = regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(name), "-")
	name = strings.TrimLeft(name, "-0123456789")
	return strings.TrimRight(name[:min(len(name), 63)], "-")
}

// community returns a standard or large community in the form of the CRD, without leading zeros, which MetalLB accepts.
// It returns false, with a finding, if the value is neither.
func (c *conversion) community(ref, field, value string) (string, bool) {
	parts, bits, prefix := strings.Split(value, ":"), 16, ""
	if parts[0] == "large" {
		parts, bits, prefix = parts[1:], 32, "large:"
	}
	valid := bits == 16 && len(parts) == 2 || bits == 32 && len(parts) == 3
	for i, p := range parts {
		n, err := strconv.ParseUint(p, 10, bits)
		valid = valid && err == nil
		parts[i] = strconv.FormatUint(n, 10)
	}
	if !valid {
		c.add(Error, ref, field, "%s is neither a standard community (65000:100) nor a large one (large:65000:1:2)", value)
		return "", false
	}
	out := prefix + strings.Join(parts, ":")
	if out != value {
		c.add(Note, ref, field, "%s is written as %s", value, out)
	}
	return out, true
}
