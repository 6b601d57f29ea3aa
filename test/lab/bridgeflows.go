// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/test/poll"
)

// This file reads and writes the flows of OVN-Kubernetes on br-ex that match requests (ARP, neighbor solicitations) for
// an address of a Service.

// flowRemoval is how long ovnkube has to remove the flows of a deleted Service. It handles the events of a Service one
// after the other, with calls of iptables for each port, and replaces all flows every 15 s.
const flowRemoval = 45 * time.Second

// requested matches the address in a flow for requests.
var requested = regexp.MustCompile(`(?:arp_tpa|nd_target)=([0-9a-f.:]+)`)

// requestFlows returns the addresses for which br-ex of a node has flows for requests, sorted and without duplicates.
func (l *Lab) requestFlows(ctx context.Context, n Node) ([]netip.Addr, error) {
	flows, err := run(ctx, "ovs-ofctl", "--no-stats", "dump-flows", "unix:"+l.path(n.Name, "br-ex.mgmt"))
	if err != nil {
		return nil, err
	}
	var addrs []netip.Addr
	for _, match := range requested.FindAllStringSubmatch(flows, -1) {
		addr, err := netip.ParseAddr(match[1])
		if err != nil {
			return nil, fmt.Errorf("flow of node %s: %w", n.Name, err)
		}
		addrs = append(addrs, addr)
	}
	slices.SortFunc(addrs, netip.Addr.Compare)
	return slices.Compact(addrs), nil
}

// OrphanedFlows returns the addresses of no Service for which br-ex of a node has flows for requests, as "node
// address".
func (l *Lab) OrphanedFlows(ctx context.Context) ([]string, error) {
	client, err := l.Client()
	if err != nil {
		return nil, err
	}
	services, err := client.CoreV1().Services(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	own := map[netip.Addr]bool{}
	for i := range services.Items {
		for _, addr := range serviceAddrs(&services.Items[i]) {
			own[addr] = true
		}
	}
	var orphaned []string
	for _, n := range l.Nodes {
		addrs, err := l.requestFlows(ctx, n)
		if err != nil {
			return nil, err
		}
		for _, addr := range addrs {
			if !own[addr] {
				orphaned = append(orphaned, n.Name+" "+addr.String())
			}
		}
	}
	return orphaned, nil
}

// serviceAddrs returns the addresses of a Service for which OVN-Kubernetes has such flows.
func serviceAddrs(s *corev1.Service) []netip.Addr {
	texts := slices.Clone(s.Spec.ExternalIPs)
	for _, ingress := range s.Status.LoadBalancer.Ingress {
		texts = append(texts, ingress.IP)
	}
	var addrs []netip.Addr
	for _, text := range texts {
		if addr, err := netip.ParseAddr(text); err == nil {
			addrs = append(addrs, addr)
		}
	}
	return addrs
}

// RemoveOrphanedFlows waits until ovnkube has removed the flows of deleted Services. OVN-Kubernetes 1.3 may keep them:
// if it handles a change of an EndpointSlice while the Service is deleted, it adds the flows again afterwards
// (AddEndpointSlice and DeleteEndpointSlice in go-controller/pkg/node/gateway_shared_intf.go call addServiceRules
// without knowing of the deletion). Many ports and a busy machine make this likely, because it calls iptables for each
// port. If flows are left, RemoveOrphanedFlows restarts ovnkube, which is the only remedy, and returns them.
func (l *Lab) RemoveOrphanedFlows(ctx context.Context) (left []string, err error) {
	waiting, cancel := context.WithTimeout(ctx, flowRemoval)
	defer cancel()
	err = poll.Until(waiting, func(context.Context) error {
		orphaned, err := l.OrphanedFlows(waiting)
		if err != nil {
			return err
		}
		if left = orphaned; len(left) > 0 {
			return fmt.Errorf("br-ex has flows for addresses of no Service: %s", strings.Join(left, ", "))
		}
		return nil
	})
	if len(left) == 0 {
		return nil, err
	}
	if err := l.RestartOVNKube(ctx); err != nil {
		return left, err
	}
	again, cancel := context.WithTimeout(ctx, flowRemoval)
	defer cancel()
	return left, poll.Until(again, func(context.Context) error {
		orphaned, err := l.OrphanedFlows(again)
		if err == nil && len(orphaned) > 0 {
			err = fmt.Errorf("br-ex has flows for addresses of no Service after a restart of ovnkube: %s",
				strings.Join(orphaned, ", "))
		}
		return err
	})
}

// KeepRequests adds a flow to br-ex of a node that sends requests for an address to the host only, like a flow of a
// deleted Service that OVN-Kubernetes keeps. A running ovnkube removes it within 15 s.
func (l *Lab) KeepRequests(ctx context.Context, node string, addr netip.Addr) error {
	n, err := l.Node(node)
	if err != nil {
		return err
	}
	match := "arp,arp_op=1,arp_tpa="
	if addr.Is6() {
		match = "icmp6,icmp_type=135,icmp_code=0,nd_target="
	}
	// The same match and priority as that of OVN-Kubernetes' flow, which it replaces.
	flow := fmt.Sprintf("cookie=0x1,priority=110,in_port=%s,%s%s,actions=LOCAL", lanLink, match, addr)
	if _, err := run(ctx, "ovs-ofctl", "add-flow", "unix:"+l.path(n.Name, "br-ex.mgmt"), flow); err != nil {
		return fmt.Errorf("flow for %s on node %s: %w", addr, node, err)
	}
	return nil
}
