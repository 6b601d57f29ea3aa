// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"net/netip"
	"testing"
	"testing/synctest"
)

// A node that accepts connections has a kernel that works, whoever keeps its agent from answering. Its addresses do not
// move before that kernel has removed them.
func TestGatewayWhoseAgentHangsIsLostOnceItsAddressesHaveExpired(t *testing.T) {
	during(t, func(r *running) {
		lost := func() bool { return r.prober.losses()["n1"] != "" }
		r.n1.set(func() { r.n1.stuck = true })
		pass(kernelTime)
		if lost() {
			t.Errorf("n1 is lost within %s", kernelTime)
		}
		pass(3 * probeEvery)
		if !lost() {
			t.Error("n1 is not lost")
		}
	})
}

// A client that keeps an agent busy prevents some of its answers, not all.
func TestGatewayWhoseAgentAnswersSometimesIsNotLost(t *testing.T) {
	during(t, func(r *running) {
		for range 5 {
			r.n1.set(func() { r.n1.stuck = true })
			pass(kernelTime / 2)
			r.n1.set(func() { r.n1.stuck = false })
			pass(2 * probeEvery)
		}
		if why := r.prober.losses()["n1"]; why != "" {
			t.Errorf("n1 is lost: %s", why)
		}
	})
}

func TestHealthCheckDistinguishesAgentFromKernel(t *testing.T) {
	synctest.Test(t, testHealthCheckDistinguishesAgentFromKernel)
}

func testHealthCheckDistinguishesAgentFromKernel(t *testing.T) {
	n := newNetwork()
	busy, _ := n.listen(t)
	away, listener := n.listen(t)
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		at   netip.AddrPort
		want heartbeat
	}{
		"the kernel accepts":   {busy, hung},
		"the kernel refuses":   {netip.MustParseAddrPort("203.0.113.1:9484"), refused},
		"there is no answer":   {away, silent},
		"the agent is serving": {startAgent(t, n).at, well},
	} {
		if got, why, _ := dialer(n.dial).ask(t.Context(), c.at); got != c.want {
			t.Errorf("%s: heartbeat %v (%s), want %v", name, got, why, c.want)
		}
	}
}
