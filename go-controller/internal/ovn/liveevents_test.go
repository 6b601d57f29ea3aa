// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ovn-org/libovsdb/model"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/test/await"
)

// slowHandler counts events. It blocks in the first one until it is released.
type slowHandler struct {
	entered, release chan struct{}
	first            atomic.Bool
	handled          atomic.Int32
}

func (h *slowHandler) OnUpdate(string, model.Model, model.Model) { h.handle() }
func (h *slowHandler) OnDelete(string, model.Model)              { h.handle() }
func (h *slowHandler) OnAdd(string, model.Model)                 { h.handle() }

func (h *slowHandler) handle() {
	if h.first.CompareAndSwap(false, true) {
		close(h.entered)
		<-h.release
	}
	h.handled.Add(1)
}

// A connection ends only once the event that is being handled has been handled. Later events are discarded.
func TestEventsEndWithTheirConnection(t *testing.T) {
	h := &slowHandler{entered: make(chan struct{}), release: make(chan struct{})}
	events, handled := &liveEvents{to: h}, make(chan bool)
	go events.OnAdd("", nil)
	<-h.entered
	go func() {
		events.end()
		handled <- h.handled.Load() > 0
	}()
	close(h.release)
	if !<-handled {
		t.Error("the connection has ended while its event is handled")
	}
	events.OnAdd("", nil)
	events.OnDelete("", nil)
	if n := h.handled.Load(); n != 1 {
		t.Errorf("%d events were handled, want 1", n)
	}
}

// No pending event of a lost connection is handled after the connection counts as lost.
func TestNoEventAfterDisconnect(t *testing.T) {
	t.Parallel()
	s := serve(t, schema)
	s.clusterRows(t)
	h := &slowHandler{entered: make(chan struct{}), release: make(chan struct{})}
	atDisconnect := make(chan int32, 1)
	l := &replica{name: "northbound", endpoint: Endpoint{Address: "unix:" + s.socket}, schema: northbound(""), handler: h,
		onSynced: func() {}, onDisconnect: func() { atDisconnect <- h.handled.Load() }}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = l.run(ctx) }()
	await.Receive(t, "the first event", h.entered)
	await.True(t, "the replica is in sync", func() bool { return l.conn.Load() != nil })
	s.kill()
	close(h.release)
	handled := await.Receive(t, "the connection counts as lost", atDisconnect)
	cancel()
	<-done
	if n := h.handled.Load(); n != handled {
		t.Errorf("%d events were handled after the connection counted as lost", n-handled)
	}
}

// How long a claim lasted on a lost connection does not count for the claim found on the next connection.
func TestClaimIsConfirmedAfterReconnect(t *testing.T) {
	t.Parallel()
	nb, sb := serve(t, schema), serve(t, southboundSchema)
	nb.clusterRows(t)
	port := rows.RedirectPort(world.ShardID{Domain: "lan"})
	sb.sbctl(t, "init", "--", "chassis-add", "c1", "geneve", "127.0.0.1")
	sb.sbctl(t, "--id=@d", "create", "Datapath_Binding", "tunnel_key=1", "--",
		"create", "Port_Binding", "logical_port="+port, "type=chassisredirect", "datapath=@d", "tunnel_key=1")
	sb.sbctl(t, "lsp-bind", port, "c1")
	d, _ := dial(t, nb, sb)
	since := func() time.Time {
		d.claimObserver.mu.Lock()
		defer d.claimObserver.mu.Unlock()
		return d.claimObserver.claims[port].since
	}
	await.True(t, "the claim is seen", func() bool { return !since().IsZero() })
	sb.kill()
	lost := time.Now()
	sb.start(t)
	await.True(t, "the claim counts from the new connection on", func() bool { return since().After(lost) })
}
