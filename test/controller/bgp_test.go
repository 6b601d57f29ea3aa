// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// far is a pool without an L2Domain. It is advertised to a peer of all nodes.
const far = `
apiVersion: slb.k8s.ovn.org/v1alpha1
kind: IPAddressPool
metadata: {name: far}
spec: {addresses: ["203.0.113.0/28"]}
---
apiVersion: slb.k8s.ovn.org/v1alpha1
kind: BGPPeer
metadata: {name: tor}
spec: {myASN: 64512, peerASN: 64513, peerAddress: 10.50.0.1}
---
apiVersion: slb.k8s.ovn.org/v1alpha1
kind: BGPAdvertisement
metadata: {name: far}
spec: {ipAddressPools: [far]}
`

// session reports a session of a node as its BGP speaker does.
func (c *cluster) session(t *testing.T, node, peer string, state v1alpha1.BGPSessionState) {
	t.Helper()
	c.apply(t, "apiVersion: slb.k8s.ovn.org/v1alpha1\nkind: BGPNodeStatus\nmetadata: {name: "+node+"}\n")
	c.kubectl(t, "patch", "bgpnodestatus", node, "--subresource=status", "--type=merge",
		fmt.Sprintf(`-p={"status":{"sessions":[{"peer":%q,"state":%q,"advertisedIPv4":0,"advertisedIPv6":0,"lastError":"hold timer expired"}]}}`, peer, state))
}

// closing serves an address like a router that does not know the node: it reads the node's OPEN and closes the
// connection.
func closing(t *testing.T, address string) {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			open := make([]byte, 4096)
			_, _ = conn.Read(open) // Without unread bytes, the connection ends without a reset.
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-ended
	})
}

// nodeReportsOnBGP runs the node process with a peer that does not exist.
func nodeReportsOnBGP(t *testing.T, c *cluster) {
	c.kubectl(t, "apply", "-f", filepath.Join(manifests, "components/bgp/rbac.yaml"))
	c.openShift(t)
	c.apply(t, networkOperator)
	kubeconfig, err := c.plane.ServiceAccountKubeconfig("ovn-kubernetes", "ovnkube-slb-node")
	if err != nil {
		t.Fatal(err)
	}
	cmd := c.run(t, c.build(t), "node", "node", "--k8s-kubeconfig="+kubeconfig, "--node-name=n1", "--enable-bgp",
		"--enable-l2-guard=false")
	eventually(t, "ready", func() bool { return cmd.get("/readyz") != "" })
	field := func(path string) string {
		out, err := c.plane.Get(t.Context(), "bgpnodestatuses", "", "n1", path)
		if err != nil {
			return ""
		}
		return out
	}
	// kubectl slb plan takes a node without a report for one without a daemon.
	eventually(t, "the daemon reports before there is a peer", func() bool {
		return field(`{.status.conditions[?(@.type=="Ready")].status}`) == "True"
	})
	c.apply(t, far)
	address := freeAddress(t)
	host, port, _ := net.SplitHostPort(address)
	c.kubectl(t, "patch", "bgppeer", "tor", "--type=merge",
		fmt.Sprintf(`-p={"spec":{"peerAddress":%q,"peerPort":%s,"connectTime":"1s"}}`, host, port))
	eventually(t, "the peer is reported, with why there is no session", func() bool {
		return field("{.status.sessions[*].peer}") == "tor" && strings.Contains(field("{.status.sessions[*].lastError}"),
			"refused")
	})
	node, err := c.client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"{.metadata.ownerReferences[*].kind} {.metadata.ownerReferences[*].uid}": "Node " + string(node.UID),
		`{.status.conditions[?(@.type=="Ready")].reason}`:                        v1alpha1.ReasonNoSession,
	} {
		if got := field(path); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
	got := cmd.scraped(t, "ovnkube_slb_bgp_session_up")
	for _, line := range []string{`ovnkube_slb_bgp_session_up{bgppeer="tor",peer="` + host + `"} 0`,
		`ovnkube_slb_bgp_updates_total{bgppeer="tor",peer="` + host + `"} 0`} {
		if !strings.Contains(got, line+"\n") {
			t.Errorf("metrics lack the session, %s:\n%s", line, got)
		}
	}
	closing(t, address)
	eventually(t, "the peer is reported to close the connection", func() bool {
		return strings.Contains(field("{.status.sessions[*].lastError}"), "closed the connection")
	})
	// The Network object of OpenShift's operator disables and enables BGP. An invalid mode changes nothing.
	ready := `{.status.conditions[?(@.type=="Ready")].reason}`
	for _, word := range []struct{ mode, want string }{{"Layer2", v1alpha1.ReasonDisabledByMode},
		{"BGP", v1alpha1.ReasonNoSession}, {"Disabled", v1alpha1.ReasonDisabledByMode}} {
		c.mode(t, word.mode)
		eventually(t, word.mode, func() bool { return field(ready) == word.want })
	}
	c.mode(t, "on")
	c.mode(t, "")
	eventually(t, "on again without the annotation", func() bool { return field(ready) == v1alpha1.ReasonNoSession })
	// Deleting the peer also removes the session.
	c.kubectl(t, "delete", "bgppeer", "tor")
	eventually(t, "no session is reported", func() bool {
		return field("{.status.sessions[*].peer}") == "" && field(`{.status.conditions[?(@.type=="Ready")].status}`) == "True"
	})
	cmd.signal(t, syscall.SIGTERM)
	eventually(t, "the daemon reports its end", func() bool {
		return field("{.status.stopTime}") != "" && field(ready) == v1alpha1.ReasonStopped
	})
}
