// SPDX-License-Identifier: Apache-2.0

package bgp_test

import (
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
)

func TestMoreSpecific(t *testing.T) {
	ascending := []string{
		"",
		"BFD is down: the path to the peer failed",
		"connect: dial tcp 10.50.0.1:179: i/o timeout: check that both sides use the same password",
		"received notification: code 6(cease) subcode 6(other configuration change)",
		"received notification: code 2(open message error) subcode 2(bad peer as)",
	}
	for i, less := range ascending {
		for j, more := range ascending {
			if got := bgp.MoreSpecific(more, less); got != (j > i) {
				t.Errorf("%q says more than %q: %t", more, less, got)
			}
		}
	}
	if bgp.MoreSpecific("received notification: code 6(cease) subcode 10(bfd down)", ascending[2]) ||
		!bgp.MoreSpecific("as number mismatch expected 64513, received 64999", ascending[3]) {
		t.Error("a session that ended because of BFD, or a mismatch that the node has found, has the wrong rank")
	}
}
