// SPDX-License-Identifier: Apache-2.0

package frrk8s

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/frrapi"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// foreign are the objects of others for a node. Nodes with the same objects share one.
type foreign struct {
	objects []*world.FRRConfiguration // sorted by name
	// merged are the objects, up to the first one that is not read or contradicts others. It does not change.
	merged *Merged
	// unread is why the objects are not all known. frozen is why frr-k8s does not merge them; its webhook refuses other
	// objects for the node as well. stalled is why it applies none although its webhook admits them.
	unread          string
	frozen, stalled *Conflict
	// preferred are the local preferences, by neighbor.
	preferred map[string]map[netip.Prefix]preference
}

// foreignOf returns the objects of others for a node.
func (r *renderer) foreignOf(node string) *foreign {
	if r.foreign == nil {
		r.readForeign()
	}
	if is := r.foreign[node]; is != nil {
		return is
	}
	return r.noForeign
}

// readForeign merges the objects of others, once for all nodes with the same ones.
func (r *renderer) readForeign() {
	keys := map[string][]byte{}
	var invalid *Conflict
	for i, c := range r.world.FRR.Configurations {
		if c.Invalid != "" && invalid == nil { // frr-k8s then converts nothing, on no node
			invalid = conflict(objectName(c.Name), "", "", "%s", c.Invalid)
			invalid.Field = "spec.nodeSelector"
		}
		if c.Peer != "" {
			continue
		}
		for _, n := range c.Nodes {
			keys[n] = binary.AppendUvarint(keys[n], uint64(i))
		}
	}
	r.foreign, r.noForeign = make(map[string]*foreign, len(keys)), r.merge(nil, invalid)
	lists := map[string]*foreign{}
	for n, key := range keys {
		is := lists[string(key)]
		if is == nil {
			is = r.merge(key, invalid)
			lists[string(key)] = is
		}
		r.foreign[n] = is
	}
}

// merge merges the objects with the numbers in a key.
func (r *renderer) merge(key []byte, invalid *Conflict) *foreign {
	f := &foreign{merged: NewMerged(r.world.FRR.Passwords), preferred: map[string]map[netip.Prefix]preference{}}
	weight := 0
	for len(key) > 0 {
		i, n := binary.Uvarint(key)
		key = key[n:]
		c := r.world.FRR.Configurations[i]
		f.objects = append(f.objects, c)
		if f.unread != "" {
			continue
		}
		weight += c.Foreign.Weight()
		switch {
		case c.Foreign.Unread != "":
			f.unread = objectName(c.Name) + " has more than is read: " + c.Foreign.Unread
		case weight > frrapi.MaxMerged:
			f.unread = fmt.Sprintf("the FRRConfigurations for the node, up to %s, have more than is read: more than %d "+
				"routers, neighbors, BFD profiles and local preferences", c.Name, frrapi.MaxMerged)
		case f.frozen == nil:
			f.frozen = f.merged.AddConverted(objectName(c.Name), c.Foreign)
		}
	}
	if f.stalled = f.merged.Missing(); f.stalled == nil {
		f.stalled = invalid
	}
	return f
}

func objectName(name string) string { return "FRRConfiguration " + name }

// preferencesOf returns the local preferences of prefixes for a neighbor in the default VRF.
func (f *foreign) preferencesOf(id string) map[netip.Prefix]preference {
	is, known := f.preferred[id]
	if !known {
		is = map[netip.Prefix]preference{}
		if n := f.merged.neighbor("", id); n != nil {
			n.preferences.addTo(is)
		}
		f.preferred[id] = is
	}
	return is
}

// findShared returns the neighbor of the default VRF that an object of others defines, and its router.
func (f *foreign) findShared(p *world.Peer) (*world.FRRConfiguration, *frrapi.ConvertedRouter,
	*frrapi.ConvertedNeighbor) {
	for _, c := range f.objects {
		for i := range c.Foreign.Routers {
			o := &c.Foreign.Routers[i]
			for j := range o.Neighbors {
				if o.VRF == "" && same(&o.Neighbors[j], p) {
					return c, o, &o.Neighbors[j]
				}
			}
		}
	}
	return nil, nil, nil
}

// same reports whether a neighbor is a peer, whatever the notation of its address is.
func same(n *frrapi.ConvertedNeighbor, p *world.Peer) bool {
	if p.Interface != "" || n.Interface != "" {
		return p.Interface == n.Interface
	}
	return n.Addr.IsValid() && n.Addr == p.Addr
}
