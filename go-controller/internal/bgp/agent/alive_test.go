// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp/speaker"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// A daemon without changes is alive. One that is stuck is not: its report would be taken for current.
func TestStuckDaemonIsNotAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, hold, isStuck := &storedStatus{object: &v1alpha1.BGPNodeStatus{}}, make(chan struct{}), atomic.Bool{}
		s := &nodeStatus{node: "n1", wakeups: make(chan struct{}, 1), unread: func() []string { return nil },
			states: func() []speaker.State { return nil },
			read: func(name string) (*v1alpha1.BGPNodeStatus, bool) {
				if isStuck.Load() {
					<-hold
				}
				return store.read(name)
			}}
		s.writer = kube.NewNodeStatusWriter(store, store.read, func(string, error) {}, s.recordWrite, isUrgent)
		a := &Agent{status: s}
		expect := func(want string) {
			t.Helper()
			<-time.After(time.Hour)
			synctest.Wait()
			if err := a.Alive(time.Minute); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("alive: %v, want %q", err, want)
			}
		}
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { s.run(ctx) })
		expect("")
		isStuck.Store(true)
		expect("the report of sessions")
		isStuck.Store(false)
		close(hold)
		expect("")
		a.deciding.Beat() // a pass begins
		expect("the pass over all sessions")
		a.deciding.Stop()
		expect("")
		stop()
		running.Wait()
		expect("")
	})
}
