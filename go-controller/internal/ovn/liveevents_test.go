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
)

// slowHandler blocks in the first event.
type slowHandler struct {
	entered, release chan struct{}
	first, down      atomic.Bool
	late             atomic.Int32
}

func (h *slowHandler) OnUpdate(string, model.Model, model.Model) {}
func (h *slowHandler) OnDelete(string, model.Model)              {}

func (h *slowHandler) OnAdd(string, model.Model) {
	if h.first.CompareAndSwap(false, true) {
		close(h.entered)
		<-h.release
	}
	if h.down.Load() {
		h.late.Add(1)
	}
}

// Pending events of a lost connection are not handled after the connection counts as lost.
func TestEventsEndWithTheirConnection(t *testing.T) {
	s := serve(t, schema)
	s.clusterRows(t)
	h := &slowHandler{entered: make(chan struct{}), release: make(chan struct{})}
	down := make(chan struct{}, 1)
	l := &replica{name: "northbound", endpoint: Endpoint{Address: "unix:" + s.socket}, schema: northbound(""), handler: h,
		onSynced: func() {}, onDisconnect: func() { h.down.Store(true); down <- struct{}{} }}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = l.run(ctx) }()
	<-h.entered
	eventually(t, "the replica is in sync", func() bool { return l.conn.Load() != nil })
	s.kill()
	select {
	case <-down:
		t.Error("the connection counts as lost while its event is handled")
	case <-time.After(time.Second):
	}
	close(h.release)
	eventually(t, "the connection counts as lost", h.down.Load)
	cancel()
	<-done
	if n := h.late.Load(); n > 0 {
		t.Errorf("%d events were handled afterwards", n)
	}
}

// How long a claim lasted on a lost connection does not count for the claim found on the next connection.
func TestClaimIsConfirmedAfterReconnect(t *testing.T) {
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
	eventually(t, "the claim is seen", func() bool { return !since().IsZero() })
	sb.kill()
	lost := time.Now()
	sb.start(t)
	eventually(t, "the claim counts from the new connection on", func() bool { return since().After(lost) })
}
