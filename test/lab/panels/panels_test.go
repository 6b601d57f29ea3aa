// SPDX-License-Identifier: Apache-2.0

package panels

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// The picture of the dashboard has each panel with its unit, and the names of a few of its series.
func TestDraw(t *testing.T) {
	board, err := Read("../../../dist/monitoring/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	if len(board.Panels) == 0 {
		t.Fatal("the dashboard has no panels")
	}
	start := time.Unix(1000, 0)
	results := make([][][]Series, len(board.Panels))
	for i, p := range board.Panels {
		for range p.Targets {
			var series []Series
			for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
				series = append(series, Series{Labels: map[string]string{"pool": "pool-" + name, "family": "IPv4"},
					Points: []Point{{start, 0}, {start.Add(time.Second), 0.5}}})
			}
			results[i] = append(results[i], series)
		}
	}
	picture, err := board.Draw(start, results)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for in := xml.NewDecoder(strings.NewReader(string(picture))); ; {
		token, err := in.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if data, ok := token.(xml.CharData); ok {
			text.Write(data)
			text.WriteByte('\n')
		}
	}
	want := []string{"Usage of pools (%)", "pool-a IPv4", "and 1 more"}
	for _, p := range board.Panels {
		want = append(want, p.Title)
	}
	for _, part := range want {
		if !strings.Contains(text.String(), part) {
			t.Errorf("the picture lacks %q:\n%s", part, text.String())
		}
	}
	if strings.Contains(text.String(), "pool-g IPv4") {
		t.Error("the legend names more series than fit")
	}
}

// Axes start at 0, and those of percentages end at 100 %: otherwise a pool looks emptier or fuller than it is.
func TestAxesOfTheDashboard(t *testing.T) {
	board, err := Read("../../../dist/monitoring/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range board.Panels {
		d := p.FieldConfig.Defaults
		if d.Min == nil || *d.Min != 0 {
			t.Errorf("panel %q: the axis does not start at 0", p.Title)
		}
		if d.Unit == "percentunit" && (d.Max == nil || *d.Max != 1) {
			t.Errorf("panel %q: the axis does not end at 100 %%", p.Title)
		}
	}
}
