// SPDX-License-Identifier: Apache-2.0

package slb

import (
	"context"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube"
)

// OpenShiftNetworkType asks once which network a cluster has, as OpenShift names it:
// OVNKubernetes or OpenShiftSDN; empty where OpenShift does not say.
func OpenShiftNetworkType(ctx context.Context, client kubernetes.Interface, config *rest.Config) (string, error) {
	clients, err := kube.NewClients(config)
	if err != nil {
		return "", err
	}
	return kube.NetworkType(ctx, client, clients)
}
