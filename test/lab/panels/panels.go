// SPDX-License-Identifier: Apache-2.0

// Package panels draws the panels of a Grafana dashboard from query results, as a picture for docs.
package panels

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Dashboard is what matters here of a Grafana dashboard. Its panels are all graphs over time, two in a row.
type Dashboard struct {
	Panels []Panel `json:"panels"`
}

// Panel is a panel of a dashboard.
type Panel struct {
	Title       string `json:"title"`
	FieldConfig struct {
		Defaults struct {
			Unit string   `json:"unit"`
			Min  *float64 `json:"min"`
			Max  *float64 `json:"max"`
		} `json:"defaults"`
	} `json:"fieldConfig"`
	Targets []Target `json:"targets"`
}

// Target is a query of a panel.
type Target struct {
	Expr         string `json:"expr"`
	LegendFormat string `json:"legendFormat"`
}

// Series is one series of the result of a query over time.
type Series struct {
	Labels map[string]string
	Points []Point
}

// Point is a value at a time.
type Point struct {
	At    time.Time
	Value float64
}

const (
	columns   = 2
	width     = 15 * vg.Centimeter // of a panel
	height    = 6 * vg.Centimeter
	maxLegend = 6 // series that a legend names
)

// Read reads a dashboard.
func Read(path string) (*Dashboard, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	d := &Dashboard{}
	if err := json.Unmarshal(text, d); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return d, nil
}

// Queries returns the queries of a panel, with a window for rates in place of Grafana's variable.
func (p *Panel) Queries(window string) []string {
	var out []string
	for _, t := range p.Targets {
		out = append(out, strings.ReplaceAll(t.Expr, "$__rate_interval", window))
	}
	return out
}

// Draw returns the dashboard as an SVG. results has the series of each query of each panel.
func (d *Dashboard) Draw(start time.Time, results [][][]Series) ([]byte, error) {
	rows := (len(d.Panels) + columns - 1) / columns
	plots := make([][]*plot.Plot, rows)
	for i := range plots {
		plots[i] = make([]*plot.Plot, columns)
	}
	for i := range d.Panels {
		p, err := d.Panels[i].plot(start, results[i])
		if err != nil {
			return nil, fmt.Errorf("panel %q: %w", d.Panels[i].Title, err)
		}
		plots[i/columns][i%columns] = p
	}
	picture := vgsvg.New(columns*width, vg.Length(rows)*height)
	tiles := draw.Tiles{Rows: rows, Cols: columns, PadX: vg.Millimeter * 4, PadY: vg.Millimeter * 4}
	for j, row := range plot.Align(plots, tiles, draw.New(picture)) {
		for i, canvas := range row {
			if plots[j][i] != nil {
				plots[j][i].Draw(canvas)
			}
		}
	}
	var out bytes.Buffer
	_, err := picture.WriteTo(&out)
	return out.Bytes(), err
}

func (p *Panel) plot(start time.Time, results [][]Series) (*plot.Plot, error) {
	out := plot.New()
	out.Title.Text = p.Title
	suffix, divisor := unit(p.FieldConfig.Defaults.Unit)
	if suffix != "" {
		out.Title.Text += " (" + suffix + ")"
	}
	out.X.Label.Text = "seconds"
	out.Y.Min = 0
	out.Legend.Top, out.Legend.Left = true, true
	out.Legend.TextStyle.Font.Size = vg.Points(8)
	named := 0
	for i, t := range p.Targets {
		slices.SortFunc(results[i], func(a, b Series) int { return strings.Compare(t.name(a), t.name(b)) })
		for _, s := range results[i] {
			points := make(plotter.XYs, len(s.Points))
			for k, at := range s.Points {
				points[k] = plotter.XY{X: at.At.Sub(start).Seconds(), Y: at.Value / divisor}
			}
			line, err := plotter.NewLine(points)
			if err != nil {
				return nil, err
			}
			line.Color, line.Width = plotutil.Color(named), vg.Points(1.5)
			out.Add(line)
			if named < maxLegend {
				out.Legend.Add(t.name(s), line)
			}
			named++
		}
	}
	if more := named - maxLegend; more > 0 {
		out.Legend.Add(fmt.Sprintf("and %d more", more))
	}
	out.Y.Max = max(out.Y.Max*1.4, 1e-3) // room for the legend
	return out, nil
}

// unit returns Grafana's unit as text, and what to divide values by.
func unit(grafana string) (suffix string, divisor float64) {
	switch grafana {
	case "bytes":
		return "MB", 1e6
	case "ops":
		return "per second", 1
	case "percentunit":
		return "%", 0.01
	case "s":
		return "s", 1
	}
	return "", 1
}

var label = regexp.MustCompile(`{{\s*(\w+)\s*}}`)

// name returns the name of a series in the legend.
func (t *Target) name(s Series) string {
	return strings.TrimSpace(label.ReplaceAllStringFunc(t.LegendFormat, func(match string) string {
		return s.Labels[label.FindStringSubmatch(match)[1]]
	}))
}
