// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// races is the maximum number of attempts to create two pools at once until both are admitted.
const races = 100

const poolsPath = "/apis/slb.k8s.ovn.org/v1alpha1/ipaddresspools"

// Overlapping pools that are created before the admission policy, or before the API server has loaded its parameters,
// are not refused. The controller reports the overlap, before and after the policy is in force.
func poolsOverlapRightAfterInstall(t *testing.T, c *cluster) {
	c.controller(t, nil)
	if err := c.createPool(t, "left", 1, 8); err != nil {
		t.Fatalf("the first pool: %v", err)
	}
	// The API server enforces a policy of another test for a short time after its deletion.
	eventually(t, "the second pool is let in", func() bool { return c.createPool(t, "right", 5, 12) == nil })
	c.admission(t)
	// Of two pools created in the same second, the first by name counts as older.
	lost := func() bool {
		got := c.accepted(t, "right")
		return strings.HasPrefix(got, "True "+v1alpha1.ReasonPartlyUsable) &&
			strings.Contains(got, `belongs to pool "left", the older one`)
	}
	eventually(t, "right reports that it lost the overlap", lost)
	eventually(t, "the policy is in force", func() bool {
		defer c.removePool(t, "third")
		err := c.createPool(t, "third", 8, 8)
		return err != nil && strings.Contains(err.Error(), "of IPAddressPool left")
	})
	if !lost() {
		t.Errorf("once the policy is in force: %s", c.accepted(t, "right"))
	}
}

// admission applies the admission policies, and removes them after the test.
func (c *cluster) admission(t *testing.T) {
	t.Helper()
	path := filepath.Join(manifests, "admission")
	c.kubectl(t, "apply", "-k", path)
	t.Cleanup(func() { c.kubectl(t, "delete", "-k", path) })
}

// createPool creates a pool with the addresses 10.60.0.first to 10.60.0.last.
func (c *cluster) createPool(t *testing.T, name string, first, last int) error {
	t.Helper()
	body := fmt.Sprintf(`{"apiVersion":"slb.k8s.ovn.org/v1alpha1","kind":"IPAddressPool","metadata":{"name":%q},"spec":{"addresses":["10.60.0.%d-10.60.0.%d"]}}`,
		name, first, last)
	return c.client.CoreV1().RESTClient().Post().AbsPath(poolsPath).SetHeader("Content-Type", "application/json").
		Body([]byte(body)).Do(t.Context()).Error()
}

func (c *cluster) removePool(t *testing.T, name string) {
	t.Helper()
	_ = c.client.CoreV1().RESTClient().Delete().AbsPath(poolsPath, name).Do(t.Context()).Error() // It may not exist.
}

// accepted returns the condition Accepted of a pool: status, reason and message.
func (c *cluster) accepted(t *testing.T, pool string) string {
	t.Helper()
	return c.kubectl(t, "get", "ippool/"+pool, "-o",
		`jsonpath={range .status.conditions[?(@.type=="Accepted")]}{.status} {.reason}: {.message}{end}`)
}

// Two overlapping pools that are created at once pass the admission policy, which sees neither of them when it checks
// the other. The older one gets the common range. If both were created in the same second, the first by name counts as
// older. When the older one is deleted, the other one gets the range.
func poolsOverlapInARace(t *testing.T, c *cluster) {
	c.admission(t)
	create := func(name string, first, last int) error { return c.createPool(t, name, first, last) }
	remove := func(name string) { c.removePool(t, name) }
	if err := create("third", 100, 109); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the policy is in force", func() bool {
		defer remove("probe")
		return create("probe", 105, 105) != nil
	})
	c.controller(t, nil)
	o := c.observe(t)

	raced, both := 0, false
	for ; raced < races && !both; raced++ {
		remove("left")
		remove("right")
		var creating sync.WaitGroup
		var errs [2]error
		creating.Go(func() { errs[0] = create("left", 1, 8) })
		creating.Go(func() { errs[1] = create("right", 5, 12) })
		creating.Wait()
		both = errs[0] == nil && errs[1] == nil
	}
	if !both {
		t.Fatalf("the policy kept one of two pools out each of %d times", races)
	}
	created := func(name string) string {
		return c.kubectl(t, "get", "ippool/"+name, "-o", "jsonpath={.metadata.creationTimestamp}")
	}
	older, younger := "left", "right"
	if created("right") < created("left") {
		older, younger = "right", "left"
	}
	t.Logf("both pools came in after %d races; %s is the older one", raced, older)

	accepted := func(name string) string { return c.accepted(t, name) }
	eventually(t, younger+" reports the overlap", func() bool {
		got := accepted(younger)
		return strings.HasPrefix(got, "True "+v1alpha1.ReasonPartlyUsable) &&
			strings.Contains(got, fmt.Sprintf("belongs to pool %q, the older one", older))
	})
	eventually(t, older+" reports no overlap", func() bool {
		return strings.HasPrefix(accepted(older), "True "+v1alpha1.ReasonAccepted)
	})
	for i := range 12 {
		c.service(t, fmt.Sprintf("web-%d", i))
	}
	eventually(t, "the 12 addresses of both are given", func() bool { return o.holders() == 12 })
	counts := func(name string) string {
		return c.kubectl(t, "get", "ippool/"+name, "-o", "jsonpath={.status.assignedIPv4}/{.status.availableIPv4}")
	}
	eventually(t, "the older one has its 8, the other 4", func() bool {
		return counts(older) == "8/0" && counts(younger) == "4/0"
	})

	c.kubectl(t, "delete", "ippool/"+older)
	eventually(t, younger+" has the range", func() bool {
		return counts(younger) == "8/0" && strings.HasPrefix(accepted(younger), "True "+v1alpha1.ReasonAccepted)
	})
	for i := range 12 {
		name := fmt.Sprintf("web-%d", i)
		if addr := netip.MustParseAddr(c.addresses(t, name)[0]).As4(); 5 <= addr[3] && addr[3] <= 8 {
			c.delete(t, name)
			late := name + "-late"
			c.service(t, late)
			c.condition(t, late, v1alpha1.ConditionAllocated, v1alpha1.ReasonAllocated)
		}
	}
	if doubles, moves := o.doubles(), o.moves(); len(doubles)+len(moves) > 0 {
		t.Errorf("doubles %v, moved %v", doubles, moves)
	}
}
