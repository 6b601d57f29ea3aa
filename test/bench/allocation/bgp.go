// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const nodeASN, routerASN = 64512, 64513

// tell starts the BGP speaker of a node and measures the time until it has advertised all Services to a router.
func (b *bench) tell(ctx context.Context) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	go listen(l)
	if err := errors.Join(b.endpoints(ctx), b.address(ctx), b.plane.Apply(ctx, fmt.Sprintf(`
apiVersion: slb.k8s.ovn.org/v1alpha1
kind: BGPPeer
metadata: {name: router}
spec: {myASN: %d, peerASN: %d, peerAddress: 127.0.0.1, peerPort: %d}
---
apiVersion: slb.k8s.ovn.org/v1alpha1
kind: BGPAdvertisement
metadata: {name: all}
spec: {ipAddressPools: [wide]}
`, nodeASN, routerASN, l.Addr().(*net.TCPAddr).Port))); err != nil { //nolint:forcetypeassert // that is what "tcp" gives
		return err
	}
	start := time.Now()
	node, err := b.subject.StartNode(ctx, "n1")
	if err != nil {
		return err
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for told := 0; told < b.services; {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d addresses advertised (log %s): %w", told, b.services, node.Log(), ctx.Err())
		case <-tick.C:
			told, _ = node.Sum(ctx, "ovnkube_slb_bgp_announced_prefixes_total") // The metrics endpoint may not be ready yet.
		}
	}
	b.result.NodeTold = time.Since(start).Seconds()
	if err := node.Rest(ctx); err != nil {
		return err
	}
	if _, b.result.NodeRSS, err = node.Usage(); err != nil {
		return err
	}
	return node.Terminate(ctx)
}

// address sets the node's internal address, which is the next hop.
func (b *bench) address(ctx context.Context) error {
	nodes := b.client.CoreV1().Nodes()
	n, err := nodes.Get(ctx, "n1", metav1.GetOptions{})
	if err != nil {
		return err
	}
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.60.0.11"}}
	_, err = nodes.UpdateStatus(ctx, n, metav1.UpdateOptions{})
	return err
}

// endpoints creates one endpoint for each Service.
func (b *bench) endpoints(ctx context.Context) error {
	ready, name, port, protocol, node := true, "http", int32(8080), corev1.ProtocolTCP, "n1"
	return each(ctx, b.services, func(ctx context.Context, i int) error {
		service := fmt.Sprintf("web-%d", i)
		_, err := b.client.DiscoveryV1().EndpointSlices(namespace).Create(ctx, &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Name: service, Namespace: namespace,
				Labels: map[string]string{discoveryv1.LabelServiceName: service}},
			AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints: []discoveryv1.Endpoint{{
				Addresses: []string{"10.244.0.10"}, NodeName: &node, Conditions: discoveryv1.EndpointConditions{Ready: &ready},
			}},
			Ports: []discoveryv1.EndpointPort{{Name: &name, Port: &port, Protocol: &protocol}},
		}, metav1.CreateOptions{})
		return err
	})
}

// listen is a router that accepts all updates and sends nothing. It proposes the longest hold time for that (RFC 4271
// section 4.2).
func listen(l net.Listener) {
	const open, keepalive = 1, 4
	message := func(kind byte, body ...byte) []byte {
		m := make([]byte, 16, 32)
		for i := range m {
			m[i] = 0xff
		}
		return append(append(binary.BigEndian.AppendUint16(m, uint16(19+len(body))), kind), body...)
	}
	hello := append([]byte{4}, binary.BigEndian.AppendUint16(nil, routerASN)...)
	hello = append(hello, 0xff, 0xff, 192, 0, 2, 1, 0) // Hold time, identifier, no optional parameters.
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			if _, err := conn.Write(append(message(open, hello...), message(keepalive)...)); err == nil {
				_, _ = io.Copy(io.Discard, conn) // Read until the session ends, for whatever reason.
			}
		}()
	}
}
