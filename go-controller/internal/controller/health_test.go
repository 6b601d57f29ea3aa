// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/dataplane"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/loop"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// wedged is a dataplane in which some calls never return.
type wedged struct{ on func(call string) }

func (w wedged) Configure(context.Context, *plan.Topology) error { w.on("configure"); return nil }

func (w wedged) Apply(context.Context, []dataplane.Change) map[world.Key]error {
	w.on("apply")
	return nil
}

func (w wedged) Prune(context.Context, func(world.Key) bool) error { w.on("prune"); return nil }

func (w wedged) Pending(world.Key) time.Time { return time.Time{} }

// A stuck loop is reported within the stall time, regardless of the call that blocks it. An idle loop is always alive.
func TestStuckLoopFailsLiveness(t *testing.T) {
	const stall = time.Minute
	for _, stuck := range []string{"", "configure", "apply", "prune", "decide"} {
		t.Run(stuck, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				release := make(chan struct{})
				on := func(call string) {
					if call == stuck {
						<-release
					}
				}
				c := &Controller{wakeups: newWakeups()}
				c.runner = loop.New(wedged{on}, loop.Options{Alive: c.applying.Beat})
				done := make(chan struct{}, 2)
				go func() { c.apply(ctx); done <- struct{}{} }()
				go func() {
					c.wakeups.run(ctx, passes{func() bool { return false }, func() { on("decide") }, c.deciding.Beat})
					done <- struct{}{}
				}()
				c.wakeups.wake()
				key := world.Key{Namespace: "shop", Name: "web"}
				c.runner.Set(&plan.Topology{}, map[world.Key]*plan.Service{key: {Key: key}}, nil)
				<-time.After(stall)
				if err := c.Alive(stall); err != nil {
					t.Errorf("after %s: %v", stall, err)
				}
				<-time.After(2 * time.Second)
				want := map[string]string{"": "", "decide": "the decision passes: no heartbeat for 1m"}
				text, known := want[stuck]
				if !known {
					text = "the runner of the dataplane: no heartbeat for 1m"
				}
				if err := c.Alive(stall); (err == nil) != (text == "") || err != nil && !strings.Contains(err.Error(), text) {
					t.Errorf("after a while: %v, want %q", err, text)
				}
				<-time.After(time.Hour)
				if err := c.Alive(stall); (err == nil) != (text == "") {
					t.Errorf("after an hour: %v, want %q", err, text)
				}
				close(release)
				cancel()
				<-done
				<-done
			})
		})
	}
}

// unconnected returns a controller that can reach neither an API server nor OVN's databases.
func unconnected(t *testing.T) *Controller {
	t.Helper()
	config := &rest.Config{Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, syscall.ECONNREFUSED
	}}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	clients, err := kube.NewClients(config)
	if err != nil {
		t.Fatal(err)
	}
	nowhere := ovn.Endpoint{Address: "unix:" + filepath.Join(t.TempDir(), "no-database")}
	c, err := New(Config{Kube: client, Clients: clients, Network: func(Hooks) (*Network, error) {
		d, err := ovn.New(ovn.Options{NB: nowhere, SB: nowhere, Changed: func(ovn.EventKind) {}})
		if err != nil {
			return nil, err
		}
		return OVN(d), nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The mode may need no database: a new leader must not be stopped because it lacks one.
func TestReadinessBeforeFirstDecision(t *testing.T) {
	c := unconnected(t)
	if err := c.Missing(); err != nil {
		t.Errorf("before the first decision: %v", err)
	}
	c.decided.Store(true)
	if c.Missing() == nil {
		t.Error("decided that layer 2 is in force, no database is missing")
	}
}

func TestRunEndsCleanlyBeforeFirstConnection(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := unconnected(t).Run(ctx); err != nil {
		t.Error(err)
	}
}
