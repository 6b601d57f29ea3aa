// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"cmp"
	"fmt"
	"html"
	"slices"
	"strings"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/printable"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// Sizes in pixels. The picture has three columns: addresses, shards, gateways.
const (
	margin, lineHeight, gap = 16, 18, 14
	headHeight              = 40
	addressX, addressWidth  = margin, 340
	shardX, shardWidth      = 420, 150
	gatewayX, gatewayWidth  = 700, 180
	width                   = gatewayX + gatewayWidth + margin
	// maxAddresses is the number of addresses that are drawn for one shard.
	maxAddresses = 10
)

// picture is an SVG in the making.
type picture struct {
	strings.Builder
	y int
}

func (p *picture) draw(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

func (p *picture) text(x, y int, class, text string) {
	p.draw(`<text x="%d" y="%d" class="%s">%s</text>`, x, y, class, html.EscapeString(printable.Line(text)))
}

func (p *picture) box(x, y, w, h int, class string) {
	p.draw(`<rect x="%d" y="%d" width="%d" height="%d" rx="4" class="%s"/>`, x, y, w, h, class)
}

func (p *picture) line(x1, y1, x2, y2 int, class string) {
	p.draw(`<path d="M%d %d C%d %d %d %d %d %d" class="%s"/>`, x1, y1, (x1+x2)/2, y1, (x1+x2)/2, y2, x2, y2, class)
}

const style = `<style>
text{font:13px sans-serif;fill:#222}.title{font-weight:bold;font-size:15px}.small{font-size:11px;fill:#666}
rect{fill:#f4f6f8;stroke:#8a97a5}.active{fill:#d9f2df;stroke:#2e8540}.broken{fill:#fbdcd9;stroke:#c0392b}
path{fill:none;stroke:#b5bfc9;stroke-dasharray:4 3}.carries{stroke:#2e8540;stroke-width:2.5;stroke-dasharray:none}
.has{stroke:#8a97a5;stroke-dasharray:none}
</style>`

// Render draws the L2Domains at a time.
func Render(o *objects.Objects, now time.Time) string {
	addresses := addressesByShard(o, now)
	p := &picture{y: margin}
	domains := slices.SortedFunc(slices.Values(o.Domains), func(a, b *v1alpha1.L2Domain) int {
		return cmp.Compare(a.Name, b.Name)
	})
	for _, d := range domains {
		p.domain(d, addresses)
	}
	if len(domains) == 0 {
		p.text(margin, p.y+lineHeight, "title", "There is no L2Domain.")
		p.y += headHeight
	}
	const head = `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d">`
	height := p.y + margin
	return fmt.Sprintf(head+"\n%s\n%s</svg>\n", width, height, width, height, style, p.String())
}

// addressesByShard returns the addresses of each shard, with their Services.
func addressesByShard(o *objects.Objects, now time.Time) map[world.ShardID][]string {
	w := o.Snapshot(now)
	layout := place.Compute(w)
	allocation := ipam.Allocate(w, nil, layout.ConfiguredShardOf)
	out := map[world.ShardID][]string{}
	services := slices.SortedFunc(slices.Values(w.Services), func(a, b *world.Service) int { return a.Key.Compare(b.Key) })
	for _, s := range services {
		for _, a := range s.Assigned {
			if id, ok := layout.ConfiguredShardOf(allocation.PoolOf(a), a); ok {
				out[id] = append(out[id], fmt.Sprintf("%s  %s", a, s.Key))
			}
		}
	}
	return out
}

func (p *picture) domain(d *v1alpha1.L2Domain, addresses map[world.ShardID][]string) {
	title := fmt.Sprintf("L2Domain %s: network %s", d.Name, d.Spec.PhysicalNetwork)
	if d.Spec.VLAN != 0 {
		title += fmt.Sprintf(", VLAN %d", d.Spec.VLAN)
	}
	p.text(margin, p.y+lineHeight, "title", title)
	p.y += headHeight
	top := p.y
	type drawn struct {
		shard  *v1alpha1.ShardStatus
		middle int
	}
	var shards []drawn
	for i := range d.Status.Shards {
		s := &d.Status.Shards[i]
		list := addresses[world.ShardID{Domain: d.Name, Index: int(s.Index)}]
		shards = append(shards, drawn{s, p.shard(s, list)})
	}
	if len(shards) == 0 {
		p.text(margin, p.y+lineHeight, "small", "no shard has an address")
		p.y += lineHeight + gap
	}
	gateways := p.gateways(d, top)
	for _, s := range shards {
		for _, name := range s.shard.Gateways {
			class := "standby"
			if name == s.shard.Active {
				class = "carries"
			}
			p.line(shardX+shardWidth, s.middle, gatewayX, gateways[name], class)
		}
	}
	p.y += gap
}

// shard draws a shard and its addresses. It returns the height of the middle of the shard.
func (p *picture) shard(s *v1alpha1.ShardStatus, list []string) int {
	if more := len(list) - maxAddresses; more > 0 {
		list = append(slices.Clone(list[:maxAddresses]), fmt.Sprintf("and %d more", more))
	}
	height := max(2, len(list))*lineHeight + 8
	middle := p.y + height/2
	class := "active"
	if s.Active == "" {
		class = "broken"
	}
	if len(list) > 0 {
		p.box(addressX, p.y, addressWidth, height, "addresses")
		p.line(addressX+addressWidth, middle, shardX, middle, "has")
	}
	for i, text := range list {
		p.text(addressX+8, p.y+(i+1)*lineHeight, "", text)
	}
	p.box(shardX, middle-22, shardWidth, 44, class)
	p.text(shardX+8, middle-4, "", fmt.Sprintf("shard %d", s.Index))
	p.text(shardX+8, middle+14, "small", "on "+cmp.Or(s.Active, "no gateway"))
	p.y += height + gap
	return middle
}

// gateways draws the nodes of a domain beside its shards. It returns the heights of their middles.
func (p *picture) gateways(d *v1alpha1.L2Domain, top int) map[string]int {
	active, names := map[string]int{}, []string{}
	for _, s := range d.Status.Shards {
		names = append(names, s.Gateways...)
		active[s.Active]++
	}
	why := map[string]string{}
	for _, out := range d.Status.ExcludedNodes {
		names, why[out.Name] = append(names, out.Name), out.Reason
	}
	slices.Sort(names)
	names = slices.Compact(names)
	middles := map[string]int{}
	y := top
	for _, name := range names {
		class, text := "standby", "standby"
		switch {
		case active[name] > 0:
			class, text = "active", world.Count(active[name], "shard")
			if why[name] != "" {
				text += ", " + why[name]
			}
		case why[name] != "":
			class, text = "broken", why[name]
		}
		p.box(gatewayX, y, gatewayWidth, 44, class)
		p.text(gatewayX+8, y+18, "", name)
		p.text(gatewayX+8, y+36, "small", text)
		middles[name] = y + 22
		y += 44 + gap
	}
	p.y = max(p.y, y)
	return middles
}
