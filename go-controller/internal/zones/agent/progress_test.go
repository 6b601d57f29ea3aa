// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/loop"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Many plans that fail do not keep the others from being reported as applied, and the report fits in a Lease.
func TestManyFailuresHoldBackNoOtherPlan(t *testing.T) {
	const many, good = 500, 1000
	p, results := small(), map[world.Key]loop.Result{}
	long := errors.New(strings.Repeat("no room; ", 1000))
	for i := range many {
		p.setPlan(nil, servicePlan(fmt.Sprintf("failing-%03d-%s", i, strings.Repeat("x", 51)), 10+i, 0))
	}
	p.setPlan(nil, servicePlan("good", good, 0))
	_, plans, _ := p.desired("n1", world.Cluster{}, nil)
	for key, plan := range plans {
		results[key] = loop.Result{Key: key, Plan: plan, Err: long}
		if key.Name == "good" {
			results[key] = loop.Result{Key: key, Plan: plan}
		}
	}
	applied, failed := p.progress("n1", results, false)
	if applied != good || len(failed) != many {
		t.Errorf("applied up to %d with %d failures, want %d with %d", applied, len(failed), good, many)
	}
	text, err := convert.ZoneReport(&world.ZoneAgent{Failed: failed})
	if err != nil || len(text) > 150_000 {
		t.Errorf("a report of %d bytes, %v; want at most 150000 of the 256 KiB for all annotations", len(text), err)
	}
	p.setPlan(nil, servicePlan("one-more", 500, 0))
	_, plans, _ = p.desired("n1", world.Cluster{}, nil)
	key := world.Key{Namespace: "shop", Name: "one-more"}
	results[key] = loop.Result{Key: key, Plan: plans[key], Err: long}
	if applied, _ := p.progress("n1", results, false); applied >= 500 {
		t.Errorf("applied up to %d, which claims a plan that failed and is not listed", applied)
	}
}
