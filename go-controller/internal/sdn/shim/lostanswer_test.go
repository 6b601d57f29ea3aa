// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
)

// A write whose answer was lost may have been made: its address must be confirmed like any other.
func TestAddressOfLostWriteMustBeConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t)
		c.observe(node("n1", "1", c.n1))
		c.configure(gateways("n1"))
		c.n1.refuse(vip)
		c.writeErrors["n1"] = errors.New("the answer was lost")
		if err := c.apply(vip); err == nil {
			t.Fatal("a write has failed, and there is no error")
		}
		delete(c.writeErrors, "n1")
		c.observe(node("n1", "200", c.n1, vip))
		err := c.apply(vip)
		if err == nil || !strings.Contains(err.Error(), "not from here") {
			t.Errorf("the node does not hold the address: %v, asked %d times", err, c.n1.asked)
		}
	})
}

// So must a release.
func TestAddressOfLostReleaseIsNotTakenBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t)
		c.observe(node("n1", "1", c.n1, vip), node("n2", "1", c.n2))
		c.configure(gateways("n1"))
		if err := c.apply(vip); err != nil {
			t.Fatal(err)
		}
		c.n1.set(func() { c.n1.hangs = true })
		c.writeErrors["n1"] = errors.New("the answer was lost")
		if err := c.Configure(t.Context(), gateways("n2")); err == nil {
			t.Fatal("a write has failed, and there is no error")
		}
		delete(c.writeErrors, "n1")
		c.observe(node("n1", "200", c.n1), node("n2", "1", c.n2))
		c.configure(gateways("n2"))
		if c.has("n2", vip) {
			t.Error("n2 has taken the address before n1 has confirmed that it gave it up")
		}
	})
}
