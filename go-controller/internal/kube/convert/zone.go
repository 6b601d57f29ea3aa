// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// zoneReport is the content of v1alpha1.AnnotationZone. Shards are named L2DOMAIN/INDEX and Services NAMESPACE/NAME.
type zoneReport struct {
	Bridges    map[string]string    `json:"bridges,omitzero"` // null if unknown; {} if the node is attached to nothing
	Claims     map[string]time.Time `json:"claims,omitempty"`
	Contested  []string             `json:"contested,omitempty"`
	Applied    uint64               `json:"applied,omitempty"`
	Failed     map[string]string    `json:"failed,omitempty"`
	Here       uint64               `json:"appliedHere,omitempty"`
	Misplaced  []netip.Addr         `json:"misplaced,omitempty"`
	Problem    string               `json:"problem,omitempty"`
	Unwritable string               `json:"unwritable,omitempty"`
	Northd     bool                 `json:"northd,omitempty"` // the cause of Unwritable
	NoOverlay  bool                 `json:"noOverlay,omitempty"`
	Started    time.Time            `json:"started,omitzero"`
}

// maxMisplaced bounds the addresses in a report: all annotations of an object together have 256 KiB.
const maxMisplaced = 1000

// ZoneReport returns the content of v1alpha1.AnnotationZone.
func ZoneReport(a *world.ZoneAgent) (string, error) {
	r := zoneReport{Bridges: a.Bridges, Claims: map[string]time.Time{}, Applied: a.Applied, Here: a.AppliedHere,
		Problem: a.Problem, Unwritable: a.Unwritable, Northd: a.Northd, NoOverlay: a.NoOverlay, Started: a.Started,
		Failed: map[string]string{}}
	for id, since := range a.Claims {
		r.Claims[id.Name()] = since
	}
	for id := range a.Contested {
		r.Contested = append(r.Contested, id.Name())
	}
	slices.Sort(r.Contested)
	for key, why := range a.Failed {
		r.Failed[key.String()] = Bounded(why)
	}
	r.Misplaced = slices.SortedFunc(maps.Keys(a.Misplaced), netip.Addr.Compare)
	r.Misplaced = r.Misplaced[:min(len(r.Misplaced), maxMisplaced)]
	text, err := json.Marshal(r)
	if err != nil {
		return "", fmt.Errorf("report of a zone: %w", err)
	}
	return string(text), nil
}

// readZone is the inverse of ZoneReport, except for Bounded. It returns nil if there is no valid report.
func readZone(text string) *world.ZoneAgent {
	var r zoneReport
	if json.Unmarshal([]byte(text), &r) != nil {
		return nil
	}
	boundNetworks(r.Bridges)
	boundValues(r.Bridges)
	maps.DeleteFunc(r.Bridges, func(network, _ string) bool { return len(network) > maxForeignText })
	boundValues(r.Failed)
	a := &world.ZoneAgent{Bridges: r.Bridges, Applied: r.Applied, AppliedHere: r.Here,
		Problem: Bounded(r.Problem), Unwritable: Bounded(r.Unwritable), Northd: r.Northd, NoOverlay: r.NoOverlay,
		Started: r.Started,
		Claims:  map[world.ShardID]time.Time{}, Contested: map[world.ShardID]bool{}, Failed: map[world.Key]string{},
		Misplaced: map[netip.Addr]bool{}}
	for name, since := range r.Claims {
		if id, ok := world.ParseShard(name); ok {
			a.Claims[id] = since
		}
	}
	for _, name := range r.Contested {
		if id, ok := world.ParseShard(name); ok {
			a.Contested[id] = true
		}
	}
	for name, why := range r.Failed {
		namespace, service, _ := strings.Cut(name, "/")
		a.Failed[world.Key{Namespace: namespace, Name: service}] = why
	}
	for _, addr := range r.Misplaced {
		a.Misplaced[addr] = true
	}
	return a
}
