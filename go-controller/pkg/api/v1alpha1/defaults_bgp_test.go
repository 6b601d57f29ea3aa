// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"os"
	"testing"

	"sigs.k8s.io/yaml"
)

// The defaults of the CRDs are equal to the constants.
func TestDefaultsAreThoseOfTheCRDs(t *testing.T) {
	for _, c := range []struct {
		crd, field string
		want       int
	}{
		{"bgppeers", "peerPort", DefaultPeerPort},
		{"bfdprofiles", "receiveInterval", DefaultBFDInterval},
		{"bfdprofiles", "transmitInterval", DefaultBFDInterval},
		{"bfdprofiles", "detectMultiplier", DefaultDetectMultiplier},
		{"bfdprofiles", "minimumTtl", DefaultMinimumTTL},
		{"bgpadvertisements", "aggregationLength", DefaultAggregationLength},
		{"bgpadvertisements", "aggregationLengthV6", DefaultAggregationLengthV6},
	} {
		raw, err := os.ReadFile("../../../../dist/manifests/crds/slb.k8s.ovn.org_" + c.crd + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		var crd struct {
			Spec struct {
				Versions []struct {
					Schema struct {
						OpenAPIV3Schema struct {
							Properties map[string]struct {
								Properties map[string]struct{ Default any }
							}
						}
					}
				}
			}
		}
		if err := yaml.Unmarshal(raw, &crd); err != nil {
			t.Fatal(err)
		}
		spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
		if got := spec.Properties[c.field].Default; got != float64(c.want) {
			t.Errorf("%s: default of %s is %v, want %d", c.crd, c.field, got, c.want)
		}
	}
}
