// SPDX-License-Identifier: Apache-2.0

package world

import (
	"fmt"
	"net/netip"
	"testing"
)

// A namespace may have any number of Services with long lists. What is stored is bounded, and each address they list is
// drawn last.
func TestStoredListsOfANamespaceAreBounded(t *testing.T) {
	var l Lists
	stored := func() int { return l.namespaces["one"].size }
	addr := func(i, j int) netip.Addr { return netip.AddrFrom4([4]byte{10, byte(i), byte(j >> 8), byte(j)}) }
	const services = maxStoredPerNamespace/maxListed + 10
	for i := range services {
		var list []netip.Prefix
		for j := range maxListed {
			list = append(list, netip.PrefixFrom(addr(i, j), 32))
		}
		if _, grown := l.Set(Key{Namespace: "one", Name: fmt.Sprint(i)}, list); !grown {
			t.Errorf("Service %d lists nothing new", i)
		}
	}
	if n := stored(); n > maxStoredPerNamespace+10*maxCover || len(l.exact) != maxStoredPerNamespace {
		t.Errorf("%d prefixes and %d addresses are stored", n, len(l.exact))
	}
	first, last := addr(0, 1), addr(services-1, 1)
	listed, _ := l.Listed([]*Service{{Given: []netip.Addr{first, last}}})
	if !listed.HasExactly(first) || !listed.Has(last) {
		t.Errorf("listed: %v", listed)
	}
	if _, grown := l.Set(Key{Namespace: "one", Name: "0"}, []netip.Prefix{netip.PrefixFrom(first, 32)}); grown {
		t.Error("a shorter list has something new")
	}
	for i := range services {
		l.Set(Key{Namespace: "one", Name: fmt.Sprint(i)}, nil)
	}
	if len(l.namespaces)+len(l.exact) != 0 {
		t.Errorf("left: %v", l)
	}
}
