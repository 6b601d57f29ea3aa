// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/dataplane"
)

// runExternal runs a test in a cluster with an external pool.
func runExternal(t *testing.T, test func(t *testing.T, c *cluster)) {
	t.Helper()
	kinds, err := loadKinds()
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, kinds, &txtar.Archive{})
		defer c.stopAll()
		c.run("> nodes 1\n> contract v1beta2\n> start controller no-database\n> external-pool ext\n> wait 1s\n")
		test(t, c)
		c.run("> wait 1m\n") // Events are written after their causes.
	})
}

// Many claims of a namespace that are being written do not delay one that another namespace needs meanwhile.
func TestNamespacesTakeTurnsWithClaims(t *testing.T) {
	runExternal(t, func(t *testing.T, c *cluster) {
		var many strings.Builder
		for i := range 100 {
			fmt.Fprintf(&many, "---\n{apiVersion: v1, kind: Service, metadata: {namespace: bank, name: s%d}, spec: {type: "+
				"LoadBalancer, ports: [{port: 80, protocol: TCP}]}}\n", i)
		}
		c.server.Delay("ipaddressclaims", 20*time.Millisecond)
		if err := c.applyManifest(strings.TrimPrefix(many.String(), "---\n")); err != nil {
			t.Fatal(err)
		}
		c.run("> wait 300ms\n> lb shop/web\n> wait 500ms\n")
		claims := c.run("> claims\n")
		if n := strings.Count(claims, "bank/"); n == 0 || n == 100 {
			t.Errorf("%d of 100 claims have been written when another namespace needs one", n)
		}
		if !strings.Contains(claims, "shop/web@") {
			t.Errorf("the only Service of its namespace still waits for its claim")
		}
	})
}

// A provider that rewrites why it refuses a claim, or gives one unusable address after the other, costs few writes of
// the Service's status, which has the last text in the end.
func TestStatusWritesForAProviderAreBounded(t *testing.T) {
	for name, step := range map[string]string{"refusal": "> refuse-claim shop/web Exhausted try %d\n",
		"address": "> fulfil shop/web 10.244.1.%d\n"} {
		runExternal(t, func(t *testing.T, c *cluster) {
			c.run("> lb shop/web\n> wait 1m\n> forget-writes\n")
			const steps = 240
			for i := range steps {
				c.run(fmt.Sprintf(step, i+1) + "> wait 250ms\n")
			}
			n := 0
			for _, w := range c.server.TakeWrites() {
				if w.Resource == "services" && w.Subresource == "status" {
					n++
				}
			}
			if n > 12 {
				t.Errorf("%s: %d writes of one status in a minute", name, n)
			}
			c.run("> wait 1m\n")
			text := strings.Fields(fmt.Sprintf(step, steps))
			if got := c.run("> service shop/web\n"); !strings.Contains(got, text[len(text)-1]) {
				t.Errorf("%s: the last text is not in the status:\n%s", name, got)
			}
		})
	}
}

// A provider that touches a claim, without another answer, causes no decision.
func TestTouchedClaimsCauseNoPass(t *testing.T) {
	runExternal(t, func(t *testing.T, c *cluster) {
		c.run("> lb shop/web\n> wait 1s\n> fulfil shop/web 203.0.113.1\n> wait 1m\n> passes controller\n")
		u, err := c.claim("shop/web")
		if err != nil {
			t.Fatal(err)
		}
		for i := range 60 {
			c.run(fmt.Sprintf("> annotate %[1]s seen=%[2]d\n> patch-status %[1]s {\"conditions\":[{\"type\":\"Ready\","+
				"\"status\":\"True\",\"reason\":\"Fulfilled\",\"message\":\"checked %[2]d times\","+
				"\"lastTransitionTime\":\"2026-01-01T00:00:00Z\"}]}\n> wait 1s\n", objectName(u), i))
		}
		if got := c.run("> passes controller\n"); got != "> passes controller\n0\n" {
			t.Errorf("without a change that counts:\n%s", got)
		}
	})
}

// claimWrites has another client undo what the controller writes to the claim of Service shop/web for ten minutes. It
// returns how often the controller has written claims.
func (c *cluster) claimWrites(undo func(c *cluster, u *unstructured.Unstructured) error) (n int) {
	c.t.Helper()
	for range 1200 {
		u, err := c.claim("shop/web")
		if err == nil && len(u.GetFinalizers()) > 0 && u.GetDeletionTimestamp() == nil {
			if err := undo(c, u); err != nil {
				c.t.Fatal(err)
			}
		}
		c.run("> wait 500ms\n")
	}
	for _, w := range c.server.TakeWrites() {
		if w.Resource == "ipaddressclaims" && w.Client == "controller" && w.Changed {
			n++
		}
	}
	return n
}

// A client that deletes a claim as soon as it exists, or removes its finalizer, costs few writes. Once it ends, the
// Service gets its address, and the claim of another Service is never delayed.
func TestClaimWritesAgainstOtherClientsAreBounded(t *testing.T) {
	for name, test := range map[string]struct {
		undo func(c *cluster, u *unstructured.Unstructured) error
		// before are commands, and text is in the Service's conditions in the end.
		before, text string
	}{
		"deletes": {text: "is deleted again and again by another client",
			undo: func(c *cluster, u *unstructured.Unstructured) error { return c.remove(u) }},
		"removes the finalizer": {before: "> fulfil shop/web 203.0.113.1\n> wait 1m\n",
			undo: func(c *cluster, u *unstructured.Unstructured) error {
				return c.patch(objectName(u), `{"metadata":{"finalizers":null}}`)
			}},
	} {
		t.Run(name, func(t *testing.T) {
			runExternal(t, func(t *testing.T, c *cluster) {
				c.run("> lb shop/web\n> wait 1s\n" + test.before + "> forget-writes\n")
				n := c.claimWrites(test.undo)
				if most := 2 * (dataplane.DriftBurst + 20); n > most { // claims that are deleted are released as well
					t.Errorf("%d writes of one claim in ten minutes, want at most %d", n, most)
				}
				if got := c.run("> service shop/web\n"); !strings.Contains(got, test.text) {
					t.Errorf("the Service does not say so:\n%s", got)
				}
				c.run("> lb shop/other\n> wait 1s\n> fulfil shop/other 203.0.113.2\n> wait 2m\n")
				if u, err := c.claim("shop/web"); err != nil || len(u.GetFinalizers()) == 0 {
					t.Errorf("in the end: %v (%v)", u, err)
				}
				if got := c.run("> service shop/other\n"); !strings.Contains(got, "203.0.113.2") {
					t.Errorf("another Service waits:\n%s", got)
				}
			})
		})
	}
}
