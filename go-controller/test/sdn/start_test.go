// SPDX-License-Identifier: Apache-2.0

package sdn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/test/sdn/site"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/ip"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/scrape"
)

// lifetimes matches an address and its remaining lifetime in the output of ip(8).
var lifetimes = regexp.MustCompile(`inet6? (\S+)/(?:32|128) .* valid_lft (\d+)sec`)

// holder returns a node that holds addresses.
func holder(held map[netip.Addr]string) string {
	return held[slices.SortedFunc(maps.Keys(held), netip.Addr.Compare)[0]]
}

// renewed waits until the agent of a node has renewed all addresses that are assigned to the node. Until then, their
// remaining lifetimes in the kernel only decrease.
func (r *running) renewed(node string, held map[netip.Addr]string) {
	r.t.Helper()
	least, waiting := map[netip.Addr]int{}, map[netip.Addr]bool{}
	for a, by := range held {
		if by == node {
			waiting[a] = true
		}
	}
	r.await("addresses of node "+node+" renewed", func(ctx context.Context) error {
		out, err := r.IP(ctx, node, "-o", "addr", "show", "dev", "eth1")
		if err != nil {
			return err
		}
		for _, found := range lifetimes.FindAllStringSubmatch(out, -1) {
			a, err := netip.ParseAddr(found[1])
			if err != nil {
				return err
			}
			left, err := strconv.Atoi(found[2])
			if err != nil {
				return err
			}
			if before, seen := least[a]; seen && left > before {
				delete(waiting, a)
			}
			if before, seen := least[a]; !seen || left < before {
				least[a] = left
			}
		}
		if len(waiting) > 0 {
			return fmt.Errorf("%d are not", len(waiting))
		}
		return nil
	})
	if err := r.obeys(node, held); err != nil {
		r.t.Fatal(err)
	}
}

func (r *running) kill(node string) {
	r.t.Helper()
	agent, err := r.Agent(node)
	if err == nil {
		err = agent.Kill()
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.prolong(node)
}

// prolong makes the kernel of a node keep the addresses whose agent has ended for an hour. On a busy machine, the next
// agent may take longer than they remain otherwise.
func (r *running) prolong(node string) {
	r.t.Helper()
	has, err := r.Kernel(node)
	if err != nil {
		r.t.Fatal(err)
	}
	var lines []string
	for a := range has {
		line := fmt.Sprintf("addr change %s dev eth1 valid_lft 3600 preferred_lft 0 noprefixroute",
			netip.PrefixFrom(a, a.BitLen()))
		if a.Is6() {
			line += " nodad"
		}
		lines = append(lines, line)
	}
	if err := ip.Batch(r.t.Context(), r.Netns(node), lines...); err != nil {
		r.t.Fatal(err)
	}
}

// withoutControllers calls do while no controller runs: there are no health checks, and no address moves, however long
// an agent is away. Then the controllers find the agents of all nodes.
func (r *running) withoutControllers(do func()) {
	r.t.Helper()
	for _, name := range []string{"c1", "c2"} {
		if err := r.controllers[name].Kill(); err != nil {
			r.t.Fatal(err)
		}
	}
	do()
	for i := 1; i <= nodes; i++ {
		r.listens(site.NodeName(i), healthPort)
	}
	for _, name := range []string{"c1", "c2"} {
		r.controller(name)
	}
}

// healthPort is the port on which agents answer health checks.
const healthPort = 9484

// listens waits until a program listens on a port of a node.
func (r *running) listens(node string, port int) {
	r.t.Helper()
	at := net.JoinHostPort("172.31.0."+strings.TrimPrefix(node, "n"), fmt.Sprint(port))
	r.await("a program that listens at "+at, func(ctx context.Context) error {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", at)
		if err == nil {
			err = conn.Close()
		}
		return err
	})
}

// startedWithoutAPIServer checks that an agent that can't read the Node keeps the addresses in the kernel.
func startedWithoutAPIServer(t *testing.T, r *running) {
	before := r.settled(2 * services)
	node := holder(before)
	r.during(pair(t, before, node), 1, func() {
		r.withoutControllers(func() {
			r.kill(node)
			if err := r.CutAPI(t.Context(), node); err != nil {
				t.Fatal(err)
			}
			if _, err := r.StartAgent(t.Context(), node); err != nil {
				t.Fatal(err)
			}
			r.renewed(node, before)
		})
		if _, err := r.Leader(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.unmoved(before)
		if err := r.RestoreAPI(t.Context(), node); err != nil {
			t.Fatal(err)
		}
	})
	if after := r.settled(2 * services); !maps.Equal(before, after) {
		t.Error("addresses moved")
	}
	// The agent applies the annotation again.
	r.kubectl("annotate", "node", node, "slb.k8s.ovn.org/drain=test")
	r.leave(node)
	r.kubectl("annotate", "node", node, "slb.k8s.ovn.org/drain-")
	r.known(node)
}

// portsBusy checks an agent while another program listens on the ports for health checks and metrics.
func portsBusy(t *testing.T, r *running) {
	before := r.settled(2 * services)
	node := holder(before)
	r.withoutControllers(func() {
		r.kill(node)
		for _, port := range []int{healthPort, site.MetricsPort} {
			occupant, err := r.Occupy(t.Context(), node, port)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = occupant.Kill() }) // already killed unless the test has failed
			r.listens(node, port)
			defer func() {
				if err := occupant.Kill(); err != nil {
					t.Error(err)
				}
			}()
		}
		agent, err := r.StartAgent(t.Context(), node)
		if err != nil {
			t.Fatal(err)
		}
		r.renewed(node, before)
		if !agent.Alive() {
			t.Error("the agent has ended")
		}
	})
	if !maps.Equal(before, r.settled(2*services)) {
		t.Error("addresses moved")
	}
	r.scrape(node)
}

// endedUnnoticed checks an agent whose termination no health check reported. Its addresses remain until their
// lifetime expires, and the agent returns before that.
func endedUnnoticed(t *testing.T, r *running) {
	before := r.settled(2 * services)
	node := holder(before)
	r.withoutControllers(func() {
		agent, err := r.Agent(node)
		if err != nil {
			t.Fatal(err)
		}
		r.during(pair(t, before, node), 1, func() {
			if err := agent.Terminate(t.Context()); err != nil {
				t.Fatal(err)
			}
			r.prolong(node)
			if err := r.obeys(node, before); err != nil {
				t.Errorf("the agent has ended without reporting it: %v", err)
			}
			if _, err := r.StartAgent(t.Context(), node); err != nil {
				t.Fatal(err)
			}
			r.renewed(node, before)
		})
	})
	r.unmoved(before)
}

// addressesChange checks an agent whose netlink dumps the kernel interrupts, so that they are repeated. A read fails
// only after a second of that. How often it does depends on the machine; that the addresses are renewed and repaired
// does not.
func addressesChange(t *testing.T, r *running) {
	before := r.settled(2 * services)
	node := holder(before)
	failed := r.readErrors(node)
	if err := r.PrepareChurn(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	churning := make(chan error, 1)
	go func() { churning <- r.Churn(ctx, node) }()
	r.renewed(node, before)
	cancel()
	if err := <-churning; err != nil {
		t.Fatal(err)
	}
	t.Logf("%d reads of the kernel's interfaces failed", r.readErrors(node)-failed)
	a := pair(t, before, node)[0]
	if _, err := r.IP(t.Context(), node, "addr", "del", netip.PrefixFrom(a, a.BitLen()).String(), "dev",
		"eth1"); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(before, r.settled(2*services)) {
		t.Error("addresses moved")
	}
}

// readErrors returns how often the agent of a node could not read the kernel's interfaces.
func (r *running) readErrors(node string) (n int) {
	r.t.Helper()
	const metric = `ovnkube_slb_sdn_netlink_errors_total{operation="read"} `
	_, rest, _ := strings.Cut(r.scrape(node), metric)
	if _, err := fmt.Sscan(rest, &n); err != nil {
		r.t.Fatalf("metric %s: %v", metric, err)
	}
	return n
}

// scrape returns the metrics of an agent, read at the node's address.
func (r *running) scrape(node string) string {
	r.t.Helper()
	s, err := scrape.New(r.t.Context(), r.Plane)
	if err != nil {
		r.t.Fatal(err)
	}
	at := net.JoinHostPort("172.31.0."+strings.TrimPrefix(node, "n"), fmt.Sprint(site.MetricsPort))
	var text string
	r.await("metrics of node "+node, func(ctx context.Context) error {
		var err error
		text, err = s.Get(ctx, at, "/metrics")
		return err
	})
	return text
}

// measured checks that the agents serve their metrics at the address of the node, to authorized clients only.
func measured(t *testing.T, r *running) {
	held := r.settled(2 * services)
	node := holder(held)
	n := 0
	for _, by := range held {
		if by == node {
			n++
		}
	}
	// An agent that has been killed holds what its kernel has before it has read its Node and written its Lease. One that
	// starts on a busy machine may need a second try for a write.
	r.await("metrics of what node "+node+" holds", func(context.Context) error {
		text := r.scrape(node)
		for _, want := range []string{
			fmt.Sprintf("ovnkube_slb_sdn_wanted_addresses %d\n", n), fmt.Sprintf("ovnkube_slb_sdn_held_addresses %d\n", n),
			`ovnkube_slb_sdn_netlink_errors_total{operation="read"} 0` + "\n",
			`ovnkube_slb_lease_writes_total{module="sdn",result="ok"} [1-9]`,
			`ovnkube_slb_lease_writes_total{module="sdn",result="error"} [0-9]`,
		} {
			if !regexp.MustCompile(`(?m)^` + strings.NewReplacer("{", `\{`, "}", `\}`).Replace(want)).MatchString(text) {
				return fmt.Errorf("metrics lack %s:\n%s", want, text)
			}
		}
		return nil
	})
	at := net.JoinHostPort("172.31.0."+strings.TrimPrefix(node, "n"), fmt.Sprint(site.MetricsPort))
	stranger, err := scrape.As(t.Context(), r.Plane, "stranger")
	if err != nil {
		t.Fatal(err)
	}
	for want, as := range map[int]*scrape.Scraper{http.StatusUnauthorized: {}, http.StatusForbidden: stranger} {
		if code, _, err := as.Do(t.Context(), "https://"+at+"/metrics"); err != nil || code != want {
			t.Errorf("status %d (%v), want %d", code, err, want)
		}
	}
	if code, _, err := (&scrape.Scraper{}).Do(t.Context(), "http://"+at+"/metrics"); err == nil &&
		code != http.StatusBadRequest || errors.Is(err, context.Canceled) {
		t.Errorf("plain HTTP: status %d (%v)", code, err)
	}
}
