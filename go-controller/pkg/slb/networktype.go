// SPDX-License-Identifier: Apache-2.0

package slb

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube"
)

// apiServerPause is the time between two attempts to reach the API server.
const apiServerPause = time.Second

// NetworkType is the type of the cluster network, in OpenShift's terms.
type NetworkType string

// The supported network types. The zero value means OVNKubernetes.
const (
	OVNKubernetes NetworkType = "OVNKubernetes"
	OpenShiftSDN  NetworkType = "OpenShiftSDN"
)

// Validate returns an error if the network type is not supported.
func (t NetworkType) Validate() error {
	switch t {
	case "", OVNKubernetes, OpenShiftSDN:
		return nil
	}
	return fmt.Errorf("network type %q is neither %s nor %s", string(t), OVNKubernetes, OpenShiftSDN)
}

// DetectNetworkType waits for the API server and returns the network type of the cluster: OpenShiftSDN if OpenShift
// reports it, otherwise OVNKubernetes.
func DetectNetworkType(ctx context.Context, client kubernetes.Interface, config *rest.Config) (NetworkType, error) {
	clients, err := kube.NewClients(config)
	if err != nil {
		return "", err
	}
	ticker := time.NewTicker(apiServerPause)
	defer ticker.Stop()
	for {
		text, err := kube.NetworkType(ctx, client, clients)
		switch {
		case err == nil && NetworkType(text) == OpenShiftSDN:
			return OpenShiftSDN, nil
		case err == nil:
			return OVNKubernetes, nil
		}
		klog.ErrorS(err, "Waiting for the API server")
		select {
		case <-ctx.Done():
			return "", err
		case <-ticker.C:
		}
	}
}

// OpenShiftNetworkType reads once the network type that OpenShift reports for the cluster: OVNKubernetes or
// OpenShiftSDN. It returns "" if OpenShift reports none.
func OpenShiftNetworkType(ctx context.Context, client kubernetes.Interface, config *rest.Config) (string, error) {
	clients, err := kube.NewClients(config)
	if err != nil {
		return "", err
	}
	return kube.NetworkType(ctx, client, clients)
}
