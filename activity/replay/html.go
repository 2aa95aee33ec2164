// SPDX-License-Identifier: Apache-2.0

package replay

import (
	_ "embed"
	"html/template"
	"io"
	"sync"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
)

//go:embed report.html
var reportHTML string

var page = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("report").Funcs(template.FuncMap{
		"number": english.Number,
		"plural": plural,
		"text":   func(d activity.Decision) string { return decisionTexts[d] },
		"chart":  newChart,
		"share": func(n, of int64) float64 {
			if of == 0 {
				return 0
			}
			return 100 * float64(n) / float64(of)
		},
		"section": func(title, note string, counts []CrawlerCount) section { return section{title, note, counts} },
	}).Parse(reportHTML))
})

// section is a table of crawlers in the page.
type section struct {
	Title, Note string
	Counts      []CrawlerCount
}

// WriteHTML writes the report as one page that loads nothing else.
func (r *Report) WriteHTML(w io.Writer) error { return page().Execute(w, r) }

// chart is bars of the requests of each day, one part for each decision.
type chart struct {
	Width, Height int
	Bars          []bar
	Most          int64
	First, Last   string
}

type bar struct {
	Day   string
	X, W  float64
	Parts []barPart
	Total int64
}

type barPart struct {
	Decision activity.Decision
	Y, H     float64
	Requests int64
}

const (
	chartWidth  = 720
	chartHeight = 160
)

func newChart(days []DayCount) *chart {
	if len(days) < 2 { // the numbers say as much
		return nil
	}
	c := &chart{Width: chartWidth, Height: chartHeight, First: days[0].Day, Last: days[len(days)-1].Day}
	for _, d := range days {
		total := int64(0)
		for _, n := range d.Requests {
			total += n
		}
		c.Most = max(c.Most, total)
	}
	step := float64(chartWidth) / float64(len(days))
	for i, d := range days {
		b := bar{Day: d.Day, W: min(step*0.8, 48)}
		b.X = float64(i)*step + (step-b.W)/2
		y := float64(chartHeight)
		for _, decision := range decisions {
			n := d.Requests[decision]
			if n == 0 {
				continue
			}
			h := float64(n) / float64(max(c.Most, 1)) * chartHeight
			y -= h
			b.Parts = append(b.Parts, barPart{decision, y, h, n})
			b.Total += n
		}
		c.Bars = append(c.Bars, b)
	}
	return c
}
