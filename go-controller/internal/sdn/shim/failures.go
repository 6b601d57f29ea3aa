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

// maxListedErrors is the maximum number of nodes named in an error about all nodes.
const maxListedErrors = 5

// failures are the errors of one update of the nodes' annotations.
type failures struct {
	// nodes are the nodes that could not be updated, addrs the addresses that are not at their desired node, and keys
	// the Services without a placement.
	nodes map[string]error
	addrs map[netip.Addr]error
	keys  map[world.Key]string
	// changed are the addresses of Services whose result may have changed without their being applied.
	changed []netip.Addr
}

func newFailures() *failures {
	return &failures{nodes: map[string]error{}, addrs: map[netip.Addr]error{}, keys: map[world.Key]string{}}
}

// node records a step that failed.
func (f *failures) node(s sdn.Step, err error) {
	f.nodes[s.Node] = err
	for _, a := range slices.Concat(s.Removed, s.New) {
		f.addrs[a] = err
	}
}

// of returns the error of a change, given what nodes have. A removal fails as long as a node that could not be updated
// has an address of the Service.
func (f *failures) of(c dataplane.Change, have sdn.Table) error {
	if c.Want == nil {
		var errs []error
		for node, err := range f.nodes {
			for _, h := range have[node] {
				if h.Service == c.Key {
					errs = append(errs, err)
					break
				}
			}
		}
		return errors.Join(errs...)
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

// ofNodes returns an error that summarizes the nodes that could not be updated, or nil.
func (f *failures) ofNodes() error {
	var errs []error
	for _, node := range slices.Sorted(maps.Keys(f.nodes)) {
		errs = append(errs, f.nodes[node])
	}
	if more := len(errs) - maxListedErrors; more > 0 {
		errs = append(errs[:maxListedErrors], fmt.Errorf("and %d more", more))
	}
	return errors.Join(errs...)
}
