// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/loop"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/report"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/worldtest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// remote is a network whose databases are connected and read, or not.
type remote struct {
	wedged
	unreachable, unread error
	shardStates         map[world.ShardID]world.ShardState
}

func (r *remote) Run(context.Context) error { return nil }
func (r *remote) Observe(w *world.Snapshot) { w.ShardStates = r.shardStates }
func (r *remote) Unreachable() error        { return r.unreachable }
func (r *remote) Unread() error             { return r.unread }

func (r *remote) Synced() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

var web = world.Key{Namespace: "shop", Name: "web"}

// After a connection is lost, the controller does not claim that a Service is announced until the database has been
// read again. A connection that returns quickly changes no status.
func TestAnnouncedIsNotClaimedWithoutTheDatabases(t *testing.T) {
	r := &remote{shardStates: map[world.ShardID]world.ShardState{{Domain: "lan"}: {Active: "n2"}}}
	c := &Controller{observer: r, wakeups: newWakeups()}
	w := worldtest.Small(5, worldtest.Service(web, 1))
	gone := errors.New("not connected")
	for _, step := range []struct {
		when                string
		at                  time.Duration
		unreachable, unread error
		want                string // nil means that the status does not change
	}{
		{"connected", 0, nil, nil, "True Announced"},
		{"lost", 10 * time.Second, gone, gone, ""},
		{"back soon, and read", 12 * time.Second, nil, gone, ""},
		{"in sync", 13 * time.Second, nil, nil, "True Announced"},
		{"lost again", 20 * time.Second, gone, gone, ""},
		{"for long", 25 * time.Second, gone, gone, "Unknown DatabaseUnreachable"},
		{"back and read", 60 * time.Second, nil, gone, ""},
		{"in sync again", 61 * time.Second, nil, nil, "True Announced"},
	} {
		r.unreachable, r.unread = step.unreachable, step.unread
		w.Now = time.Unix(1000, 0).Add(step.at)
		r.Observe(w)
		known, unreachableAt := c.observe(w)
		if (step.when == "lost" || step.when == "lost again") != unreachableAt.After(w.Now) {
			t.Errorf("%s: next pass at %s", step.when, unreachableAt)
		}
		d := c.state.Decide(w)
		known.Programmed = map[world.Key]loop.Result{web: {Key: web, Plan: d.Plans[web]}}
		got := ""
		b := report.NewBuilder(d, known)
		if v := b.Services(&report.Cache{})[web].Announced; v != nil {
			got = string(v.Status) + " " + v.Reason
		}
		if got != step.want {
			t.Errorf("%s: %q, want %q", step.when, got, step.want)
		}
		domain, _ := b.Domains()["lan"](&v1alpha1.L2Domain{}, time.Now())
		ready := meta.FindStatusCondition(domain.Status.Conditions, v1alpha1.ConditionReady)
		if unknown := ready != nil && ready.Status == metav1.ConditionUnknown &&
			ready.Reason == v1alpha1.ReasonDatabaseUnreachable; unknown != (step.when == "for long") {
			t.Errorf("%s: domain %+v", step.when, ready)
		}
	}
}
