// SPDX-License-Identifier: Apache-2.0

// Package revision speaks of the versions of a Node that its agent obeys: they stand in the health checks that the shim asks
// the agent with.
package revision

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// questionPrefix begins the service that an agent is asked about.
const questionPrefix = "slb.k8s.ovn.org/node@"

// Question is the service of gRPC's health check (grpc.health.v1) that is SERVING once the agent
// obeys a version of its Node, or a later one.
func Question(version string) string { return questionPrefix + version }

// Asked returns the version that a Question is about; false if the service is another one.
func Asked(service string) (version string, ok bool) {
	return strings.CutPrefix(service, questionPrefix)
}

// Newer tells whether a version of an object comes after another one, both resource versions
// (KEP-5504). What is none comes before all others.
func Newer(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	if err != nil {
		return version != "" && than == ""
	}
	return order > 0
}
