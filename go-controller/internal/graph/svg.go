// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"cmp"
	"fmt"
	"html"
	"math"
	"slices"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/printable"
)

// Sizes in pixels. A figure has three columns: lists of addresses, boxes, boxes.
const (
	margin, lineHeight, gap = 16, 18, 14
	headHeight              = 40
	boxHeight               = 44
	listWidth, boxWidth     = 400, 210
	middleX                 = margin + listWidth + 80
	rightX                  = middleX + boxWidth + 150
	width                   = rightX + boxWidth + margin
	// maxLines is the number of lines of a list, maxText the number of characters of a line of a list, and maxTitle that
	// of a box.
	maxLines, maxText, maxTitle = 11, 54, 30
)

const style = `<style>
svg{background:#fff}text{font:13px sans-serif;fill:#222}
.title{font-weight:bold;font-size:15px}.small{font-size:11px;fill:#666}
rect{fill:#f4f6f8;stroke:#8a97a5}.active{fill:#d9f2df;stroke:#2e8540}.broken{fill:#fbdcd9;stroke:#c0392b}
path{fill:none;stroke:#b5bfc9;stroke-dasharray:4 3}.carries{stroke:#2e8540;stroke-width:2.5;stroke-dasharray:none}
.has{stroke:#8a97a5;stroke-dasharray:none}.down{stroke:#c0392b}
</style>`

// Classes of boxes and lines.
const (
	active  = "active"
	broken  = "broken"
	standby = "standby"
	carries = "carries"
	has     = "has"
	down    = "down"
)

// item is a list of addresses or a box. Its lines are the text of a list; a box has two.
type item struct {
	lines  []string
	class  string
	left   []edge // what leads to it from the column before
	middle int    // height of its middle in the picture
}

type edge struct {
	from  *item
	class string
}

func box(class, title, detail string) *item {
	return &item{lines: []string{title, detail}, class: class}
}

// figure is a part of the picture under a title of its own.
type figure struct {
	title         string
	lists         []*item
	middle, right []*item
}

// picture is an SVG in the making.
type picture struct {
	strings.Builder
	y int
}

func (p *picture) draw(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

// text writes a line of at most limit characters. The whole text shows when the pointer rests on it.
func (p *picture) text(x, y int, class, text string, limit int) {
	text = printable.Line(text)
	full := ""
	if runes := []rune(text); len(runes) > limit {
		full, text = "<title>"+html.EscapeString(text)+"</title>", string(runes[:limit-1])+"…"
	}
	p.draw(`<text x="%d" y="%d" class="%s">%s%s</text>`, x, y, class, full, html.EscapeString(text))
}

func (p *picture) rect(x, y, w, h int, class string) {
	p.draw(`<rect x="%d" y="%d" width="%d" height="%d" rx="4" class="%s"/>`, x, y, w, h, class)
}

func (p *picture) line(x1, y1, x2, y2 int, class string) {
	p.draw(`<path d="M%d %d C%d %d %d %d %d %d" class="%s"/>`, x1, y1, (x1+x2)/2, y1, (x1+x2)/2, y2, x2, y2, class)
}

// drawFigure draws a figure below what there is.
func (p *picture) drawFigure(f figure) {
	p.text(margin, p.y+lineHeight, "title", f.title, 1<<10)
	p.y += headHeight
	top := p.y
	for _, l := range f.lists {
		if more := len(l.lines) - maxLines; more > 0 {
			l.lines = append(slices.Clone(l.lines[:maxLines-1]), fmt.Sprintf("and %d more", more+1))
		}
		height := max(boxHeight, len(l.lines)*lineHeight+8)
		l.middle = p.y + height/2
		if len(l.lines) > 0 {
			p.rect(margin, p.y, listWidth, height, "addresses")
		}
		for i, text := range l.lines {
			p.text(margin+8, p.y+(i+1)*lineHeight, "", text, maxText)
		}
		p.y += height + gap
	}
	p.y = max(p.y, p.drawColumn(f.middle, middleX, margin+listWidth, top),
		p.drawColumn(f.right, rightX, middleX+boxWidth, top))
	p.y += gap
}

// legend explains the colours and lines below the figures.
func (p *picture) legend() {
	for _, text := range []string{
		"Lines from shards: green to the active gateway, dashed to the next one.",
		"Lines from nodes to BGP peers: green where they advertise addresses, grey for a session without any, red without " +
			"a session.",
		"Boxes: green works, grey stands by, red does not work: its text says why. Lists: the addresses, with their " +
			"Services.",
	} {
		p.text(margin, p.y+lineHeight, "small", text, 1<<10)
		p.y += lineHeight
	}
}

// drawColumn places the boxes of a column beside what leads to them, without overlap, and those to which nothing leads
// below. It draws them with their lines, which begin at x coordinate from, and returns the height below the last one.
func (p *picture) drawColumn(boxes []*item, x, from, top int) int {
	boxes = slices.Clone(boxes)
	slices.SortStableFunc(boxes, func(a, b *item) int { return cmp.Compare(a.desired(), b.desired()) })
	y, beyond := top, 0
	for _, b := range boxes {
		b.middle = y + boxHeight/2
		if len(b.left) > 0 {
			b.middle = max(b.middle, b.desired())
			beyond += b.middle - b.desired()
		}
		y = b.middle + boxHeight/2 + gap
	}
	y = top
	for _, b := range boxes {
		b.middle = max(y+boxHeight/2, b.middle-beyond/len(boxes))
		y = b.middle + boxHeight/2 + gap
		for _, e := range b.left {
			if e.class != has || len(e.from.lines) > 0 {
				p.line(from, e.from.middle, x, b.middle, e.class)
			}
		}
	}
	for _, b := range boxes {
		p.rect(x, b.middle-boxHeight/2, boxWidth, boxHeight, b.class)
		p.text(x+8, b.middle-4, "", b.lines[0], maxTitle)
		p.text(x+8, b.middle+14, "small", b.lines[1], maxTitle+8)
	}
	return y
}

// desired returns the mean height of what leads to a box; what carries traffic counts first.
func (b *item) desired() int {
	for _, class := range []string{carries, has, standby, down} {
		sum, n := 0, 0
		for _, e := range b.left {
			if e.class == class {
				sum, n = sum+e.from.middle, n+1
			}
		}
		if n > 0 {
			return sum / n
		}
	}
	return math.MaxInt
}
