// SPDX-License-Identifier: Apache-2.0

package slb

import (
	"context"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube"
)

// OpenShiftNetworkType reads once the network type that OpenShift reports for the cluster: OVNKubernetes or
// OpenShiftSDN. It returns "" if OpenShift reports none.
func OpenShiftNetworkType(ctx context.Context, client kubernetes.Interface, config *rest.Config) (string, error) {
	clients, err := kube.NewClients(config)
	if err != nil {
		return "", err
	}
	return kube.NetworkType(ctx, client, clients)
}
