// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
	"github.com/ovnkube-slb/ovnkube-slb/test/await"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/controlplane"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/proc"
)

func (s *scene) leads(t *testing.T, name string) {
	t.Helper()
	eventually(t, name+" leads", func() bool { return s.leader(t) == name })
}

// vacant deletes the lease of a previous leader that was killed. Otherwise a process of the same name would count as
// leader already.
func (s *scene) vacant(t *testing.T) {
	t.Helper()
	err := s.client.CoordinationV1().Leases("ovn-kubernetes").Delete(t.Context(), "ovnkube-slb", metav1.DeleteOptions{})
	if err != nil && !errors.IsNotFound(err) {
		t.Fatal(err)
	}
}

// In the middle of a burst, one leader is terminated and releases the lease. The next one is killed, and a third one
// finishes.
func leadersComeAndGoInABurst(t *testing.T, c *cluster) {
	s := c.scene(t)
	first := c.command(t, s.binary, "first", s.ovn)
	s.leads(t, "first")
	second := c.command(t, s.binary, "second", s.ovn)

	b := c.burst(t, 0, crowd/2, nil)
	b.reach(t, crowd/5)
	first.signal(t, syscall.SIGTERM)
	s.leads(t, "second")
	if err := first.end(t); err != nil {
		t.Errorf("after the stop request: %v", err)
	}
	c.keep(t, s.binary, "third", s.ovn)
	b.wait(t)

	b = c.burst(t, crowd/2, crowd, nil)
	b.reach(t, crowd/5)
	second.signal(t, syscall.SIGKILL)
	b.wait(t)
	s.leads(t, "third")
	s.allServed(t)
	s.strictly(t)
	s.nothingLeft(t)
}

// The controller is killed several times while it writes. The last controller finds partial writes of all kinds, and a
// restart after it writes nothing.
func killedAsItWrites(t *testing.T, c *cluster) {
	const lives = 4
	s := c.scene(t)
	run := func() *command { return c.command(t, s.binary, "only", s.ovn, "--leader-elect=false") }
	for life := range lives {
		p, written := run(), s.transactions(t)
		b := c.burst(t, life*crowd/lives, (life+1)*crowd/lives, nil)
		eventually(t, "something is written", func() bool { return s.transactions(t) > written })
		p.signal(t, syscall.SIGKILL)
		_ = p.end(t)
		b.wait(t)
	}
	last := run()
	s.allServed(t)
	s.exact(t)
	counts := func() [2]int { return [2]int{s.written(), s.transactions(t)} }
	c.settled(t, counts)
	last.signal(t, syscall.SIGTERM)
	if err := last.end(t); err != nil {
		t.Errorf("after the stop request: %v", err)
	}
	before := counts()
	next := run()
	eventually(t, "the next is ready", func() bool { return next.get("/readyz") != "" })
	if after := c.settled(t, counts); after != before {
		t.Errorf("status revisions and transactions %v, the next made them %v", before, after)
	}
	s.strictly(t)
	s.nothingLeft(t)
}

// A leader is stopped until another one leads, and continues while that one is busy. It exits immediately. Requests
// that it had already sent may still arrive, so two Services may temporarily have the same address.
func leaderSleepsThroughItsTerm(t *testing.T, c *cluster) {
	s := c.scene(t)
	first := c.command(t, s.binary, "first", s.ovn)
	s.leads(t, "first")
	c.keep(t, s.binary, "second", s.ovn)

	b := c.burst(t, 0, crowd*4/5, nil)
	b.reach(t, crowd/5)
	first.signal(t, syscall.SIGSTOP)
	s.leads(t, "second")
	rest := c.burst(t, crowd*4/5, crowd, nil)
	first.signal(t, syscall.SIGCONT)
	if err := first.end(t); err == nil {
		t.Error("the first one ends without an error")
	}
	if s.leader(t) != "second" {
		t.Errorf("%q leads, want the second still", s.leader(t))
	}
	b.wait(t)
	rest.wait(t)
	s.allServed(t)
	s.convergent(t)
	s.nothingLeft(t)
}

// The API server is killed in the middle of a burst and restarts with the same etcd. The leader survives if its lease
// outlives the outage. On a busy machine it does not: the leader exits, and its kubelet restarts it. All Services are
// served in both cases.
func apiServerDiesInABurst(t *testing.T, c *cluster) {
	s := c.scene(t)
	c.keep(t, s.binary, "only", s.ovn)
	s.leads(t, "only")
	b := c.burst(t, 0, crowd, nil)
	b.reach(t, crowd/3)
	c.restartAPIServer(t)
	b.wait(t)
	s.allServed(t)
	s.strictly(t)
	s.nothingLeft(t)
}

// The API server is down until the lease has expired. The leader exits, as it must, and is restarted.
func apiServerIsAwayForLongerThanALease(t *testing.T, c *cluster) {
	s := c.scene(t)
	only := c.keep(t, s.binary, "only", s.ovn)
	s.leads(t, "only")
	b := c.burst(t, 0, crowd, nil)
	b.reach(t, crowd/3)
	start := c.killAPIServer(t)
	eventually(t, "the leader is in its second life", func() bool { return only.lives.Load() > 1 })
	if only.result == nil {
		t.Error("the first process ended without an error")
	}
	start()
	b.wait(t)
	s.allServed(t)
	s.strictly(t)
	s.nothingLeft(t)
}

func (c *cluster) restartAPIServer(t *testing.T) {
	t.Helper()
	c.killAPIServer(t)()
}

// killAPIServer kills the API server. The returned function starts it again with the same etcd.
func (c *cluster) killAPIServer(t *testing.T) (startAgain func()) {
	t.Helper()
	p, err := proc.Find(c.plane.Dir(), controlplane.APIServerProcess)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	// The threads of a killed process release its port one after the other.
	eventually(t, "the port is free", func() bool {
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp",
			strings.TrimPrefix(c.plane.RESTConfig().Host, "https://"))
		return err == nil && listener.Close() == nil
	})
	return func() {
		t.Helper()
		start(t, proc.Spec{Name: p.Name, Dir: c.plane.Dir(), Args: p.Args, Ready: func(ctx context.Context) error {
			return c.client.CoreV1().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
		}})
	}
}

// Other clients change labels, annotations and conditions of every Service while it gets its address. Most writes of
// the controller conflict with a newer object.
func othersWriteInABurst(t *testing.T, c *cluster) {
	s := c.scene(t)
	only := c.command(t, s.binary, "only", s.ovn)
	s.leads(t, "only")
	patch := func(ctx context.Context, name string) error {
		for i := range 6 {
			change, kind, sub := fmt.Sprintf(`{"metadata":{"labels":{"round":"%d"}}}`, i), types.MergePatchType, []string(nil)
			switch i % 3 {
			case 1:
				change = fmt.Sprintf(`{"metadata":{"annotations":{"round":"%d"}}}`, i)
			case 2:
				condition := fmt.Sprintf(`{"type":"example.org/Checked","status":"True","reason":"Round","message":"%d","lastTransitionTime":%q}`,
					i, metav1.Now().UTC().Format(time.RFC3339))
				change, kind, sub = `{"status":{"conditions":[`+condition+`]}}`, types.StrategicMergePatchType, []string{"status"}
			}
			if _, err := c.client.CoreV1().Services(ns).Patch(ctx, name, kind, []byte(change), metav1.PatchOptions{},
				sub...); err != nil {
				return fmt.Errorf("patch %s: %w", name, err)
			}
		}
		return nil
	}
	s.burst(t, 0, crowd, patch).wait(t)
	// A controller that got little CPU time wrote when the others had finished. They go on until there was a storm: each
	// of them takes a condition away, which the controller writes again.
	eventually(t, "many writes of the controller conflict", func() bool {
		n := only.counter(t, `ovnkube_slb_status_writes_total{kind="Service",result="conflict"}`)
		t.Logf("%d conflicts", n)
		if n >= crowd/10 {
			return true
		}
		s.burst(t, 0, crowd, func(ctx context.Context, name string) error {
			const taken = `{"status":{"conditions":[{"$patch":"delete","type":"` + v1alpha1.ConditionAllocated + `"}]}}`
			if _, err := c.client.CoreV1().Services(ns).Patch(ctx, name, types.StrategicMergePatchType, []byte(taken),
				metav1.PatchOptions{}, "status"); err != nil {
				return fmt.Errorf("patch %s: %w", name, err)
			}
			return patch(ctx, name)
		}).wait(t)
		return false
	})
	s.allServed(t)
	s.strictly(t)
	for i := range crowd {
		c.condition(t, fmt.Sprintf("web-%d", i), "example.org/Checked", "Round")
	}
	s.nothingLeft(t)
}

// convergent waits until each Service has an address and none belongs to two of them any more. In between one may have:
// what the controller counts and what OVN has may be ahead of the status that takes the address from one of the two.
func (s *scene) convergent(t *testing.T) {
	t.Helper()
	var doubles []double
	await.NoError(t, "each Service has an address of its own", func(context.Context) error {
		doubles = s.doubles()
		for _, d := range doubles {
			if !d.ended() {
				return fmt.Errorf("two Services have one address: %v; it was had by %v", d, s.history(d.older))
			}
		}
		if n := s.holders(); n != crowd {
			return fmt.Errorf("%d Services have an address, want %d", n, crowd)
		}
		return nil
	})
	most := 0
	for _, n := range s.moves() {
		most = max(most, n)
	}
	t.Logf("%d doubles; %d Services moved, with at most %d addresses; %d revisions", len(doubles), len(s.moves()), most,
		s.written())
}
