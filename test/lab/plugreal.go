// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/kubelet"
	"github.com/ovnkube-slb/ovnkube-slb/test/poll"
)

// podNetworksAnnotation is where OVN-Kubernetes reports the addresses of a pod.
const podNetworksAnnotation = "k8s.ovn.org/pod-networks"

// podNetwork is the entry of that annotation for the default network.
type podNetwork struct {
	MAC string         `json:"mac_address"`
	IPs []netip.Prefix `json:"ip_addresses"`
}

// plugReal gives a pod the addresses that OVN-Kubernetes assigned, and returns when the flows of its port on br-int are
// installed.
func (p *Plug) plugReal(ctx context.Context, n Node, pod kubelet.Pod) ([]netip.Prefix, error) {
	var network podNetwork
	if err := poll.Within(ctx, poll.Limit, func(ctx context.Context) (err error) {
		network, err = p.network(ctx, pod)
		return err
	}); err != nil {
		return nil, err
	}
	if err := p.link(ctx, n, pod, network.MAC, network.IPs); err != nil {
		return nil, err
	}
	if _, err := p.lab.vsctl(ctx, n, "wait-until", "Interface", podLink(pod),
		"external_ids:ovn-installed=true"); err != nil {
		return nil, fmt.Errorf("its port has no flows: %w", err)
	}
	return network.IPs, nil
}

func (p *Plug) network(ctx context.Context, pod kubelet.Pod) (podNetwork, error) {
	object, err := p.client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	if err != nil {
		return podNetwork{}, err
	}
	if object.UID != pod.UID {
		return podNetwork{}, fmt.Errorf("another pod has its name: UID %s, want %s", object.UID, pod.UID)
	}
	text, ok := object.Annotations[podNetworksAnnotation]
	if !ok {
		return podNetwork{}, fmt.Errorf("no annotation %s yet", podNetworksAnnotation)
	}
	var networks struct {
		Default podNetwork `json:"default"`
	}
	if err := json.Unmarshal([]byte(text), &networks); err != nil {
		return podNetwork{}, fmt.Errorf("annotation %s: %q: %w", podNetworksAnnotation, text, err)
	}
	if len(networks.Default.IPs) == 0 {
		return podNetwork{}, fmt.Errorf("annotation %s: %q: no address on the default network", podNetworksAnnotation, text)
	}
	return networks.Default, nil
}
