// SPDX-License-Identifier: Apache-2.0

package place

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// decideMove decides about the request to move shards. While it is in progress, its node is the first gateway of its
// shards (moveTarget). Afterwards the usual rule keeps the shards there: the node is the current gateway. A request
// that is over stays over, so that it moves nothing later, for example when its node has failed and returns.
func (d *Domain) decideMove(members []*world.Node, w *world.Snapshot) {
	r := d.Spec.Move
	if r == nil {
		return
	}
	if last := d.Spec.Moved; last.Text == r.Text && last.IsOver() {
		d.Move = last
		return
	}
	d.Move = world.MoveResult{Text: r.Text, State: world.MoveInProgress}
	if d.Move.Message = d.noMoveReason(members, w); d.Move.Message != "" {
		d.Move.State = world.MoveFailed
		return
	}
	to := d.member(members, r.Node)
	for _, index := range r.Shards {
		c := w.ShardStates[world.ShardID{Domain: d.Spec.Name, Index: index}]
		if c.Active == to.Name && len(c.Order) > 0 && c.Order[0] == to.Name {
			continue
		}
		d.Move.Message = fmt.Sprintf("node %q is not the first and active gateway of shard %d yet", r.Node, index)
		if r.Expired {
			d.Move.State = world.MoveFailed
			d.Move.Message = fmt.Sprintf("no claim of shard %d by node %q was observed within %s", index, r.Node,
				world.MoveTime)
		}
		return
	}
	d.Move.State, d.Move.Message = world.MoveCompleted, fmt.Sprintf("node %q is the active gateway", r.Node)
}

// moveTarget returns the name of the node to which a shard is moving on request, or an empty string.
func (d *Domain) moveTarget(index int) string {
	if d.Move.State != world.MoveInProgress || !slices.Contains(d.Spec.Move.Shards, index) {
		return ""
	}
	return d.Spec.Move.Node
}

// withCurrent returns the order of a shard that moves, on request or because of preempt, with its current gateway in
// second place, or in first place while the node joins the group, or was out of it or faulty a short while ago. It is
// the gateway until its successor has claimed the shard, and stays it if that fails, so it must not leave the group
// before, even if the group then has more than gateways.max members.
func (d *Domain) withCurrent(order, members []*world.Node, c world.ShardState) []*world.Node {
	i := d.currentGateway(members, fit, c)
	if i == noMember || members[i] == order[0] {
		return order
	}
	others := slices.DeleteFunc(order[1:], func(n *world.Node) bool { return n == members[i] })
	if d.Spec.Preempt && slices.Contains(d.Spec.Recovering, order[0].Name) ||
		!d.Spec.Preempt && d.Spec.Move != nil && d.Spec.Move.Joining {
		return slices.Concat([]*world.Node{members[i]}, order[:1], others)
	}
	return slices.Concat(order[:1], []*world.Node{members[i]}, others)
}

// noMoveReason returns why the shards of the request can't be moved to its node, or an empty string if they can.
func (d *Domain) noMoveReason(members []*world.Node, w *world.Snapshot) string {
	r := d.Spec.Move
	switch {
	case r.Problem != "":
		return r.Problem
	case d.DisabledReason+d.Unserved != "":
		return cmp.Or(d.DisabledReason, d.Unserved)
	case len(d.Spec.Problems) > 0:
		return "the L2Domain is invalid and not served; see " + v1alpha1.ConditionAccepted
	case d.Spec.Preempt:
		return "spec.failover.preempt is true, so the shards would move back at once"
	}
	for _, index := range r.Shards {
		if index < 0 || index >= len(d.seeds) {
			return fmt.Sprintf("shard %d does not exist: the shards are 0 to %d (spec.gateways.shards)", index, len(d.seeds)-1)
		}
	}
	n := d.member(members, r.Node)
	if n == nil {
		return d.notMemberReason(r.Node, w)
	}
	switch {
	case d.fault(n) != "":
		return fmt.Sprintf("node %q reports: %s", n.Name, d.fault(n))
	case d.RecentlyStale[n.Name]:
		return fmt.Sprintf("node %q had stale flows of OVN-Kubernetes until a short while ago, and gets no shards of "+
			"gateways that work until %s", n.Name, d.staleUntil(n))
	case n.Draining != "":
		return fmt.Sprintf("node %q is draining: %s", n.Name, n.Draining)
	case n.Unreachable:
		return fmt.Sprintf("node %q is not reachable: its kubelet has stopped reporting", n.Name)
	case d.lacksFamily(n) && d.best(members) == fit:
		return fmt.Sprintf("node %q has no address in the subnets of one family (%s)", n.Name, d.subnets())
	case n.Agent != nil && n.Agent.Silent:
		return fmt.Sprintf("the agent of node %q does not report (ovnkube-slb node --enable-l2)", n.Name)
	}
	for _, index := range r.Shards {
		c := w.ShardStates[world.ShardID{Domain: d.Spec.Name, Index: index}]
		if stays := cmp.Or(d.held[index], d.immovable(members, c)); stays != nil && stays != n {
			return fmt.Sprintf("node %q, the active gateway of shard %d, can't release it: %s", stays.Name, index,
				cmp.Or(stays.Agent.Unwritable, "its agent does not report (ovnkube-slb node --enable-l2)"))
		}
		if misses(c, n) > 0 {
			return fmt.Sprintf("node %q was the first gateway of shard %d a while ago and has not claimed it", n.Name, index)
		}
	}
	return ""
}

// notMemberReason returns why a node can't be a gateway.
func (d *Domain) notMemberReason(name string, w *world.Snapshot) string {
	for _, out := range d.Excluded {
		if out.Node == name {
			return out.Message
		}
	}
	if d.member(w.Nodes, name) == nil {
		return fmt.Sprintf("node %q does not exist", name)
	}
	return fmt.Sprintf("node %q is not selected by spec.nodeSelectors", name)
}

// member returns the node with a name, or nil.
func (d *Domain) member(nodes []*world.Node, name string) *world.Node {
	if i := slices.IndexFunc(nodes, func(n *world.Node) bool { return n.Name == name }); i >= 0 {
		return nodes[i]
	}
	return nil
}
