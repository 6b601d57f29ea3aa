// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/explain"
)

// maxRoutes is the number of routes that are printed unless all are wanted.
const maxRoutes = 50

// printRoutes prints the addresses and the nodes that advertise them. Unless all are wanted, those come first that a
// node does not advertise although it should, or the reverse, and the number of lines is bounded.
func (r *bgpReport) printRoutes(w io.Writer, wide bool) {
	routes, more := r.Routes, 0
	if !wide && len(routes) > maxRoutes {
		lacking := func(r explain.Route) bool {
			return len(r.WithoutSession()) > 0 || len(r.Nodes) == 0 || len(r.NotWithdrawn) > 0
		}
		works := slices.DeleteFunc(slices.Clone(routes), lacking)
		routes = slices.DeleteFunc(slices.Clone(routes), func(r explain.Route) bool { return !lacking(r) })
		routes = append(routes, works...)
		routes, more = routes[:maxRoutes], len(routes)-maxRoutes
	}
	t := table(w)
	head, stays := "ADDRESS\tSERVICE\tADVERTISED BY\tTO\tWITHOUT SESSION", slices.ContainsFunc(routes,
		func(r explain.Route) bool { return len(r.NotWithdrawn) > 0 })
	if stays {
		head += "\tNOT WITHDRAWN BY"
	}
	if wide {
		head += "\tNEXT HOP"
	}
	fmt.Fprintln(t, head)
	for _, route := range routes {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s", route.Address, route.Service, few(r.advertisers(&route), wide),
			few(route.Peers, wide), few(route.WithoutSession(), wide))
		if stays {
			fmt.Fprintf(t, "\t%s", few(route.NotWithdrawn, wide))
		}
		if wide {
			fmt.Fprintf(t, "\t%s", few(route.NextHops, wide))
		}
		fmt.Fprintln(t)
	}
	t.Flush()
	if more > 0 {
		fmt.Fprintf(w, "... and %d more (-o wide lists all)\n", more)
	}
}

// advertisers returns the nodes that advertise a route, with "(unknown)" behind those that did, if whether they have a
// session with its peers still is not known or their daemon has stopped.
func (r *bgpReport) advertisers(route *explain.Route) []string {
	known, doubtful := map[string]bool{}, map[string]bool{}
	for i := range r.Sessions {
		if s := &r.Sessions[i]; slices.Contains(route.Peers, s.Peer) {
			lists := known
			if s.Unknown != "" || s.Stopped {
				lists = doubtful
			}
			lists[s.Node] = true
		}
	}
	list := slices.Clone(route.Nodes)
	for i, node := range list {
		if doubtful[node] && !known[node] {
			list[i] += " (unknown)"
		}
	}
	return list
}
