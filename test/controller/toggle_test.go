// SPDX-License-Identifier: Apache-2.0

package controller

import (
	_ "embed"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
	"github.com/ovnkube-slb/ovnkube-slb/test/await"
)

// openShiftKinds has the relevant parts of the two Network kinds of OpenShift.
//
//go:embed testdata/openshift-kinds.yaml
var openShiftKinds string

const (
	operatorKind = "networks.operator.openshift.io"
	configKind   = "networks.config.openshift.io"
)

const networkOperator = `
apiVersion: operator.openshift.io/v1
kind: Network
metadata: {name: cluster}
spec:
  clusterNetwork: [{cidr: 10.244.0.0/16, hostPrefix: 24}]
  serviceNetwork: [10.96.0.0/16]
  defaultNetwork: {type: OVNKubernetes, ovnKubernetesConfig: {ipv4: {internalJoinSubnet: 10.50.0.100/30}}}
`

// openShift serves OpenShift's kinds until the end of the test.
func (c *cluster) openShift(t *testing.T) {
	t.Helper()
	t.Cleanup(func() { c.kubectl(t, "delete", "--ignore-not-found", "crd", configKind, operatorKind) })
	c.apply(t, openShiftKinds)
	await.NoError(t, "OpenShift's kinds are served", c.plane.ServesKinds)
}

// mode annotates the operator's object. An empty value removes the annotation.
func (c *cluster) mode(t *testing.T, value string, more ...string) {
	t.Helper()
	annotation := v1alpha1.AnnotationMode + "=" + value
	if value == "" {
		annotation = v1alpha1.AnnotationMode + "-"
	}
	c.kubectl(t, append([]string{"annotate", "--overwrite", operatorKind, "cluster", annotation}, more...)...)
}
