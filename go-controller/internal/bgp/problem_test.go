// SPDX-License-Identifier: Apache-2.0

package bgp_test

import (
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

func TestMoreSpecific(t *testing.T) {
	ascending := []bgp.Problem{
		{},
		{Text: "the path to the peer failed", Reason: v1alpha1.BGPErrorBFDDown},
		{Text: "connect: connection refused"},
		{Text: "received notification", Reason: v1alpha1.BGPErrorNotification},
		{Text: "as number mismatch", Reason: v1alpha1.BGPErrorWrongASN},
	}
	for i, less := range ascending {
		for j, more := range ascending {
			if got := more.MoreSpecific(less); got != (j > i) {
				t.Errorf("%v says more than %v: %t", more, less, got)
			}
		}
	}
	if unanswered := (bgp.Problem{Text: "i/o timeout", Reason: v1alpha1.BGPErrorNoAnswer}); unanswered.MoreSpecific(
		ascending[2]) || ascending[2].MoreSpecific(unanswered) {
		t.Error("no answer says as much as a refused connection")
	}
}
