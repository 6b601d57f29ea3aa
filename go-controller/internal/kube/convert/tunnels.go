// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// tunnelsReport is the content of v1alpha1.AnnotationTunnels.
type tunnelsReport struct {
	AllDown int      `json:"allDown,omitempty"`
	Down    []string `json:"down,omitempty"`
}

// maxTunnelsDown bounds the chassis in a report. A gateway has a tunnel to each node.
const maxTunnelsDown = 64

// TunnelsReport returns the content of v1alpha1.AnnotationTunnels, with the first chassis if there are many.
func TunnelsReport(t world.Tunnels) (string, error) {
	text, err := json.Marshal(tunnelsReport{t.AllDown, t.Down[:min(len(t.Down), maxTunnelsDown)]})
	if err != nil {
		return "", fmt.Errorf("report of tunnels: %w", err)
	}
	return string(text), nil
}

// readTunnels is the inverse of TunnelsReport, and keeps its bounds: a node that is taken over writes what it likes. It
// returns nil if there is no valid report. One of a single other node does not count: which of the two is cut off is
// unknown.
func readTunnels(text string) *world.Tunnels {
	var r tunnelsReport
	if json.Unmarshal([]byte(text), &r) != nil || r.AllDown < 0 || r.AllDown == 1 {
		return nil
	}
	down := slices.DeleteFunc(r.Down, func(chassis string) bool { return chassis == "" || len(chassis) > maxForeignText })
	slices.Sort(down)
	down = slices.Compact(down)
	return &world.Tunnels{AllDown: r.AllDown, Down: down[:min(len(down), maxTunnelsDown)]}
}
