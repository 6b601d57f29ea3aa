// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/dataplane"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/sdn"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// maxTold is how many failures an error about all nodes names.
const maxTold = 5

// failures are what went wrong when nodes were told.
type failures struct {
	// nodes could not be told, addrs are not where they shall be, keys have no place.
	nodes map[string]error
	addrs map[netip.Addr]error
	keys  map[world.Key]string
	// still are the addresses that nodes have not confirmed.
	still map[string][]netip.Addr
}

func newFailures() *failures {
	return &failures{nodes: map[string]error{}, addrs: map[netip.Addr]error{}, keys: map[world.Key]string{}, still: map[string][]netip.Addr{}}
}

// node notes a step that failed.
func (f *failures) node(s sdn.Step, err error) {
	f.nodes[s.Node] = err
	for _, a := range slices.Concat(s.Gone, s.New) {
		f.addrs[a] = err
	}
}

// of is what concerns a change; a removal is done only once every node could be told.
func (f *failures) of(c dataplane.Change) error {
	if c.Want == nil {
		return errors.Join(slices.Collect(maps.Values(f.nodes))...)
	}
	if why := f.keys[c.Key]; why != "" {
		return errors.New(why)
	}
	for _, v := range c.Want.VIPs {
		if err := f.addrs[v.Addr]; err != nil {
			return err
		}
	}
	return nil
}

// any is what concerns all, nil for nothing.
func (f *failures) any() error {
	var errs []error
	for _, node := range slices.Sorted(maps.Keys(f.nodes)) {
		errs = append(errs, f.nodes[node])
	}
	if len(errs) == 0 {
		for _, a := range slices.SortedFunc(maps.Keys(f.addrs), netip.Addr.Compare) {
			errs = append(errs, f.addrs[a])
		}
	}
	if more := len(errs) - maxTold; more > 0 {
		errs = append(errs[:maxTold], fmt.Errorf("and %d more", more))
	}
	return errors.Join(errs...)
}
