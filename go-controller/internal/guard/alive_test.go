// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/kubernetes/fake"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/nodelease"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn"
)

// A guard that waits for Open vSwitch is alive. One whose checks are stuck is not: its report would be taken for
// current, because the Lease is still renewed.
func TestStuckGuardIsNotAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nowhere := t.TempDir()
		g, err := New(Options{Node: "n1", Kube: fake.NewClientset(), Switch: ovn.Endpoint{Address: "unix:" + nowhere + "/db"},
			RunDir: nowhere, Report: &nodelease.Reporter{}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { g.watch(ctx) })
		<-time.After(5 * time.Minute)
		synctest.Wait()
		if err := g.Alive(time.Minute); err != nil {
			t.Errorf("a guard that waits: %v", err)
		}
		stop()
		running.Wait()
		if err := g.Alive(0); err != nil {
			t.Errorf("a guard that has ended: %v", err)
		}
		g.watching.Beat() // a check begins
		<-time.After(2 * time.Minute)
		if g.Alive(time.Minute) == nil {
			t.Error("a guard that is stuck is alive")
		}
	})
}
