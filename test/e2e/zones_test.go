// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

var _ = Describe("a segment where each node has its own databases", func() {
	It("is refused in words that say what to do, and nothing is written", Label(withoutLayer2), func(ctx SpecContext) {
		if !cluster.Network().Zones() {
			Skip("one database configures all nodes")
		}
		applyExamples(ctx)
		refused := And(ContainSubstring("interconnect"), ContainSubstring("BGPAdvertisement"))
		Eventually(ready("l2domain", "provider")).WithContext(ctx).Should(And(HavePrefix("False Unsupported: "), refused))
		Eventually(condition("web", v1alpha1.ConditionAnnounced)).WithContext(ctx).
			Should(And(HavePrefix("False Unsupported: "), refused))
		Eventually(ready("ippool", "public")).WithContext(ctx).Should(And(HavePrefix("False Unsupported: "), refused))
		Expect(leftOut("provider")(ctx)).To(BeEmpty())
		Expect(ourRows(ctx)).To(BeEmpty())
	})
})
