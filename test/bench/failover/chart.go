// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"strings"
)

// chart draws one row per figure on a logarithmic scale, with a dot for the gap of each repeat and a bar for the
// median.
func chart(figures []figure) string {
	const left, width, row, top, right = 220, 640, 34, 40, 40
	const low, high = 10.0, 10_000.0 // milliseconds
	at := func(ms float64) float64 {
		return left + width*math.Log(min(max(ms, low), high)/low)/math.Log(high/low)
	}
	height := top + row*len(figures) + 20
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n", left+width+right, height)
	fmt.Fprintln(&b, `<rect width="100%" height="100%" fill="white"/>`)
	for _, tick := range []float64{10, 30, 100, 300, 1000, 3000, 10_000} {
		fmt.Fprintf(&b, `<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="#ddd"/><text x="%.1f" y="%d" text-anchor="middle" fill="#555">%g ms</text>`+"\n",
			at(tick), at(tick), top-10, height-20, at(tick), top-16, tick)
	}
	for i, f := range figures {
		y := top + row*i + row/2
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s, %d VIPs, %s</text>`+"\n", left-12, y+4, f.Event, f.VIPs,
			f.Family)
		for _, gap := range f.GapsMS {
			fmt.Fprintf(&b, `<circle cx="%.1f" cy="%d" r="4" fill="#1f77b4" fill-opacity="0.4"/>`+"\n", at(gap), y)
		}
		fmt.Fprintf(&b, `<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="#d62728" stroke-width="2"/>`+"\n", at(f.MedianMS),
			at(f.MedianMS), y-10, y+10)
	}
	fmt.Fprintln(&b, "</svg>")
	return b.String()
}
