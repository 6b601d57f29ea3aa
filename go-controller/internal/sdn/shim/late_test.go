// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A gateway that is well and does not confirm makes changes of Services on other gateways wait once in a minute.
func TestWaitForGatewayThatWasLateIsShort(t *testing.T) {
	synctest.Test(t, testWaitForGatewayThatWasLateIsShort)
}

func testWaitForGatewayThatWasLateIsShort(t *testing.T) {
	c := newCluster(t)
	block := make(chan struct{})
	t.Cleanup(func() { close(block) })
	c.n1.onWatch = func() { <-block }
	c.observe(node("n1", "1", c.n1))
	c.configure(gateways("n1"))
	for range 2 {
		if err := c.apply(vip); !errors.Is(err, errUnconfirmed) {
			t.Fatal(err)
		}
	}
	late, now := c.late["n1"], time.Now()
	if got := patience(late, late.Add(lateTime-1)); late.IsZero() || got != lateHandoverTime {
		t.Errorf("late at %s: the next wait is %s", late, got)
	}
	for name, last := range map[string]time.Time{"never": c.late["n2"], "long ago": now.Add(-lateTime)} {
		if got := patience(last, now); got != handoverTime {
			t.Errorf("%s: the wait is %s", name, got)
		}
	}
}

// The deadline of a request is known to the agent, whose server may be the first that ends it.
func TestDeadlineOfAgentIsItsDelay(t *testing.T) { synctest.Test(t, testDeadlineOfAgentIsItsDelay) }

func testDeadlineOfAgentIsItsDelay(t *testing.T) {
	c := newCluster(t)
	c.n1.broken = status.Error(codes.DeadlineExceeded, "stream terminated by RST_STREAM with error code: CANCEL")
	c.observe(node("n1", "1", c.n1))
	c.configure(gateways("n1"))
	if err := c.apply(vip); !errors.Is(err, errUnconfirmed) || c.late["n1"].IsZero() {
		t.Errorf("%v, late: %v", err, c.late)
	}
}
