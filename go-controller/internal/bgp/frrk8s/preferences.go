// SPDX-License-Identifier: Apache-2.0

package frrk8s

import (
	"cmp"
	"net/netip"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/frrapi"
)

// preference is the local preference of a prefix, and the object that has it.
type preference struct {
	value uint32
	of    string
}

// preferences are the local preferences of the prefixes of a neighbor, as prefixes are written: those in a list of an
// object, and in the base. nil is none. Nothing is copied until many objects have some for the same neighbor.
type preferences struct {
	base *preferences
	of   string
	list []frrapi.PrefixLocalPref
	// index has those of the list and of bases that were added to it, once they are looked up in a long list.
	index map[string]preference
	depth int
}

// maxScanned is the maximum length of a list, and of a chain of bases, that is searched without an index.
const maxScanned = 8

// with returns p and others, which have no other value of a prefix. others have no base.
func (p *preferences) with(others *preferences) *preferences {
	switch {
	case p == nil:
		return others
	case others == nil:
		return p
	}
	return &preferences{base: p, of: others.of, list: others.list, depth: p.depth + 1}
}

func (p *preferences) at(prefix string) (preference, bool) {
	for ; p != nil; p = p.base {
		if p.index == nil && len(p.list) <= maxScanned {
			for _, l := range p.list {
				if l.Prefix == prefix {
					return preference{l.LocalPref, p.of}, true
				}
			}
		} else if is, ok := p.indexed()[prefix]; ok {
			return is, true
		}
	}
	return preference{}, false
}

func (p *preferences) indexed() map[string]preference {
	if p.index == nil {
		p.index = make(map[string]preference, len(p.list))
		for _, l := range p.list {
			p.index[l.Prefix] = preference{l.LocalPref, p.of}
		}
	}
	return p.index
}

// shortened returns p with a chain of bases that is not long. The last one is changed for that.
func (p *preferences) shortened() *preferences {
	if p == nil || p.depth <= maxScanned {
		return p
	}
	return p.joined()
}

// joined returns p without a base.
func (p *preferences) joined() *preferences {
	if p.base == nil {
		return p
	}
	out := p.base.joined()
	index := out.indexed()
	for _, l := range p.list {
		index[l.Prefix] = preference{l.LocalPref, p.of}
	}
	return out
}

// addTo adds them by prefix, whatever its notation is. Of several notations with other values, one counts, always the
// same.
func (p *preferences) addTo(to map[netip.Prefix]preference) {
	if p == nil {
		return
	}
	p.base.addTo(to)
	for text, is := range p.indexed() {
		prefix, ok := frrapi.ParsePrefix(text)
		was, twice := to[prefix]
		if ok && (!twice || cmp.Or(cmp.Compare(is.of, was.of), cmp.Compare(is.value, was.value)) < 0) {
			to[prefix] = is
		}
	}
}
