// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"encoding/json"
	"maps"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// faultReport is a fault in v1alpha1.AnnotationFaults.
type faultReport struct {
	Kind    world.FaultKind `json:"kind"`
	Message string          `json:"message"`
	Links   string          `json:"links,omitempty"`
	Bridge  string          `json:"bridge,omitempty"`
}

// FaultsReport returns the content of v1alpha1.AnnotationFaults.
func FaultsReport(faults map[string]world.Fault) (string, error) {
	reports := make(map[string]faultReport, len(faults))
	for network, f := range faults {
		reports[network] = faultReport(f)
	}
	text, err := json.Marshal(reports)
	return string(text), err
}

// readFaults reads the content of v1alpha1.AnnotationFaults. A fault without a message is none.
func readFaults(text string) map[string]world.Fault {
	var reports map[string]faultReport
	if json.Unmarshal([]byte(text), &reports) != nil {
		return nil
	}
	maps.DeleteFunc(reports, func(network string, f faultReport) bool { return network == "" || f.Message == "" })
	var faults map[string]world.Fault
	boundNetworks(reports)
	for network, f := range reports {
		if faults == nil {
			faults = make(map[string]world.Fault, len(reports))
		}
		faults[network] = world.Fault{Kind: world.FaultKind(Bounded(string(f.Kind))),
			Message: Bounded(f.Message), Links: Bounded(f.Links),
			Bridge: Bounded(f.Bridge)}
	}
	return faults
}
