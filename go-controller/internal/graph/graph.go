// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/explain"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// Render draws the L2Domains, and BGP if there are peers, at a time.
func Render(o *objects.Objects, now time.Time) string {
	addresses := addressesByShard(o, now)
	p := &picture{y: margin}
	domains := slices.SortedFunc(slices.Values(o.Domains), func(a, b *v1alpha1.L2Domain) int {
		return cmp.Compare(a.Name, b.Name)
	})
	for _, d := range domains {
		p.drawFigure(domain(d, addresses))
	}
	if len(domains) == 0 {
		p.drawFigure(figure{title: "There is no L2Domain."})
	}
	if hasBGP(o) {
		p.drawFigure(routing(o, explain.Routes(o, now), explain.UnknownSessions(o, now)))
	}
	p.legend()
	const head = `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d">`
	height := p.y + margin
	return fmt.Sprintf(head+"\n%s\n%s</svg>\n", width, height, width, height, style, p.String())
}
