// SPDX-License-Identifier: Apache-2.0

package convert

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// AutoAssignCIDRs reads spec.externalIP.autoAssignCIDRs of OpenShift's Network
// (config.openshift.io/v1). What is no list of texts, OpenShift itself can't read.
func AutoAssignCIDRs(network *unstructured.Unstructured) []string {
	list, _, err := unstructured.NestedStringSlice(network.Object, "spec", "externalIP", "autoAssignCIDRs")
	if err != nil {
		return nil
	}
	return list
}
