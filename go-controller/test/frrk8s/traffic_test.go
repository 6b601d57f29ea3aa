// SPDX-License-Identifier: Apache-2.0

package frrk8s

import (
	"fmt"
	"io"
	"net"
	"os/exec"
	"runtime"
	"testing"

	"github.com/vishvananda/netns"

	"github.com/ovnkube-slb/ovnkube-slb/test/await"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/ip"
)

// reach connects a client behind the router to an address of a Service, until each node has answered. The nodes have
// the address as OVN-Kubernetes' load balancers have it; what leads to them are only the routes of FRR.
func (fb *fabric) reach(t *testing.T, addr string) {
	t.Helper()
	tor := fb.Router.Netns
	client := tor + "-client"
	batch := func(netns string, lines ...string) {
		t.Helper()
		if err := ip.Batch(t.Context(), netns, lines...); err != nil {
			t.Fatal(err)
		}
	}
	batch("", "netns add "+client, "link add client netns "+tor+" type veth peer name eth0 netns "+client)
	t.Cleanup(func() {
		if out, err := exec.Command("ip", "netns", "del", client).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	batch(client, "link set lo up", "addr add 10.78.0.2/24 dev eth0", "link set eth0 up",
		"route add default via 10.78.0.1")
	batch(tor, "addr add 10.78.0.1/24 dev client", "link set client up")
	// A router hashes ports, too.
	if out, err := exec.CommandContext(t.Context(), "ip", "netns", "exec", tor, "sh", "-c", "cd /proc/sys/net/ipv4 && "+
		"echo 1 >ip_forward && echo 1 >fib_multipath_hash_policy").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	const port = "80"
	for _, n := range fb.Nodes {
		batch(n.FRR.Netns, "route add local "+addr+" dev lo", "route add 10.78.0.0/24 via 10.77.0.1")
		var listener net.Listener
		within(t, n.FRR.Netns, func() (err error) {
			listener, err = net.Listen("tcp", net.JoinHostPort(addr, port))
			return err
		})
		t.Cleanup(func() { _ = listener.Close() })
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				_, _ = io.WriteString(conn, n.Name) // The client asks again.
				_ = conn.Close()
			}
		}()
	}
	answered := map[string]bool{}
	await.True(t, fmt.Sprintf("an answer of each node at %s", addr), func() bool {
		within(t, client, func() error {
			conn, err := net.Dial("tcp", net.JoinHostPort(addr, port))
			if err != nil {
				return err
			}
			defer func() { _ = conn.Close() }()
			name, err := io.ReadAll(conn)
			answered[string(name)] = true
			return err
		})
		return len(answered) == len(fb.Nodes)
	})
}

// within runs a function on a thread in a network namespace. The sockets that it opens stay there.
func within(t *testing.T, namespace string, do func() error) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // The thread ends with the goroutine.
		ns, err := netns.GetFromName(namespace)
		if err == nil {
			err = netns.Set(ns)
			_ = ns.Close()
		}
		if err == nil {
			err = do()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatalf("in network namespace %s: %v", namespace, err)
	}
}
