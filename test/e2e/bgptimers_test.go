// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// bePatient takes BFD from BGPPeer tor until the spec ends, and gives it FRR's own hold time: a machine that stands
// still for seconds ends no session. It is for specs in which a session that ends is a failure. The sessions are new
// afterwards, and FRR 8.4 has no BFD for dynamic neighbors whose session was replaced: specs with BFD come before.
func bePatient(ctx context.Context) {
	GinkgoHelper()
	DeferCleanup(func(ctx SpecContext) { holdTime(ctx, 9, `"tor"`) })
	holdTime(ctx, 180, "null")
}

// holdTime returns when the router has sessions with the hold time, in seconds, with all nodes, and their routes.
func holdTime(ctx context.Context, seconds int, profile string) {
	GinkgoHelper()
	kubectl(ctx, "", "patch", "bgppeer", "tor", "--type=merge",
		fmt.Sprintf(`-p={"spec":{"holdTime":"%ds","bfdProfile":%s}}`, seconds, profile))
	Eventually(func(ctx context.Context) error {
		var sessions map[string]struct {
			State string `json:"bgpState"`
			Hold  int    `json:"bgpTimerHoldTimeMsecs"`
		}
		if err := cluster.Router().Show(ctx, "show bgp neighbors json", &sessions); err != nil {
			return err
		}
		for _, s := range sessions {
			if s.State != "Established" || s.Hold != 1000*seconds {
				return fmt.Errorf("the router has sessions %+v, want a hold time of %d s", sessions, seconds)
			}
		}
		return refreshed(ctx)
	}).WithContext(ctx).Should(Succeed())
}
