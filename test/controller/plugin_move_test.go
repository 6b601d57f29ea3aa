// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
	"github.com/ovnkube-slb/ovnkube-slb/test/await"
)

// pluginMoves checks that move shows what moves, waits for the claim of the new gateway, and leaves no request behind.
func pluginMoves(t *testing.T, c *cluster) {
	o, p := databases(t), c.plugin(t)
	c.controller(t, o)
	c.apply(t, baseObjects)
	c.endpoints(t, "web", "10.244.1.10")
	c.service(t, "web")
	c.condition(t, "web", v1alpha1.ConditionAnnounced, v1alpha1.ReasonNoActiveGateway)
	o.claim(t, "chassis-2")
	c.active(t, "n2")
	get := func(path string) string {
		return c.field(t, "l2domains", "lan", path)
	}
	const annotation = `{.metadata.annotations.slb\.k8s\.ovn\.org/move}`
	shard := get("{.status.shards[0].index}")
	first := func(node string) func() bool {
		return func() bool { return get("{.status.shards[0].gateways[0]}") == node }
	}
	// The first gateway is the one with the claim once that has settled.
	eventually(t, "n2 is the first gateway", first("n2"))

	p.expect(t, "move web -n "+ns, 1, "--to: is missing")
	p.expect(t, "move absent -n "+ns+" --to n3", 1, "service "+ns+"/absent: not found")
	p.expect(t, "move web -n "+ns+" --to absent", 1, `node "absent" does not exist`)
	p.expect(t, "move web -n "+ns+" --to n2", 0, "Nothing moves: node n2 is the active gateway of "+ns+"/web already.")
	moves := fmt.Sprintf("moves shard %s of L2Domain lan from n2 to n3, with 1 Service:\n  %s/web 10.50.0.", shard, ns)
	p.expect(t, "move web -n "+ns+" --to n3 --dry-run", 0, moves, "dry run: nothing was changed")
	p.expect(t, "drain n3 --wait=false", 0)
	p.expect(t, "move web -n "+ns+" --to n3", 1, `L2Domain lan: node "n3" is draining`)
	p.expect(t, "undrain n3", 0)

	// No ovn-controller claims the shard in this test.
	noRequest := func() {
		t.Helper()
		// The status may still be from before the controller noticed the request.
		await.NoError(t, "a withdrawn request has no effect", func(context.Context) error {
			if left := get(annotation) + get("{.status.move}"); left != "" || !first("n2")() {
				return fmt.Errorf("the first gateway is n2: %t, left of the request: %q", first("n2")(), left)
			}
			return nil
		})
	}
	p.timesOut(t, "move "+ns+"/web --to n3", `node "n3" is not the first and active gateway of shard `+shard+" yet",
		noRequest, moves, "the move has not completed within ")
	noRequest()

	moved := make(chan struct{})
	t.Cleanup(func() { <-moved })
	go func() {
		defer close(moved)
		p.expect(t, "move "+ns+"/web --to n3 --timeout "+await.Limit.String(), 0, moves,
			fmt.Sprintf("shard %s of L2Domain lan has moved to n3", shard))
	}()
	eventually(t, "n3 is the first gateway", first("n3"))
	o.claim(t, "chassis-3")
	<-moved
	eventually(t, "the request is removed", func() bool { return get(annotation)+get("{.status.move}") == "" })
	c.active(t, "n3")

	c.kubectl(t, "annotate", "l2domain", "lan", v1alpha1.AnnotationMove+"=n1")
	eventually(t, "the unreadable request is reported", func() bool {
		return strings.HasPrefix(get(`{.status.conditions[?(@.type=="Accepted")].message}`),
			"annotation "+v1alpha1.AnnotationMove+": n1 is not of the form") &&
			strings.Contains(c.field(t, "events", "", "{.items[*].reason}"),
				v1alpha1.EventMoveFailed)
	})
	c.kubectl(t, "annotate", "--overwrite", "l2domain", "lan",
		v1alpha1.AnnotationMove+`={"node":"n1","shards":[`+shard+`]}`)
	p.expect(t, "move "+ns+"/web --to n1", 1, "another move is in progress")
}
