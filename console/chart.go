// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
)

// These constants are the size of a chart in SVG units. The browser stretches the chart to the width of its card.
const (
	chartWidth  = 720
	chartHeight = 150
)

// bucket holds the numbers of requests in the period of one bar. The period begins at Start.
type bucket struct {
	Start time.Time
	counts
}

// layer is the area of a chart that shows the requests with one verdict.
type layer struct{ Class, Name, Path string }

type chart struct {
	Label  string // a sentence for people who cannot see the chart
	Layers []layer
	Y      [3]string
	X      []string
	Note   string
	Bars   []bar
	Rows   []bucket // the same data for a table
	Total  counts
	Of     string // the period of the chart in words
}

// bar is an area of the chart that the user can click. Link leads to the same page, limited to the area's days.
type bar struct{ X, Width, Text, Link string }

// parts lists the verdicts in a bar from the bottom up, each with a function that returns its number of requests.
var parts = []struct {
	class, name string
	of          func(*counts) int64
}{
	{"f-allowed", "Allowed", func(c *counts) int64 { return c.Allowed }},
	{"f-unlisted", "Unlisted", func(c *counts) int64 { return c.Unknown }},
	{"f-disallowed", "Disallowed, but served", func(c *counts) int64 { return c.Closed }},
	{"f-would", "Would be blocked", func(c *counts) int64 { return c.Would }},
	{"f-blocked", "Blocked", func(c *counts) int64 { return c.Blocked }},
}

// newChart draws the bars of the chosen period. A bar that covers one or more whole days links to the same page,
// limited to these days. The parameter what is the beginning of the label, such as "Requests".
func (v *view) newChart(what string, buckets []bucket) *chart {
	s := v.steps()
	c := &chart{Label: fmt.Sprintf("%s per %s by decision, %s. The table below has the same numbers.", what, s.unit, v.Period()), Rows: buckets, Of: v.Period()}
	if s.width >= 24*time.Hour {
		c.Label += " Each bar links to the days that it shows."
	}
	c.Note = "Requests per " + s.unit + ", in UTC."
	if _, to := v.span(); to.After(v.Now) {
		c.Note += " The last bar is incomplete, because its period has not ended yet."
	}
	var most int64 = 1
	for i := range buckets {
		c.Total.plus(buckets[i].counts)
		most = max(most, buckets[i].All)
	}
	top := niceTop(most)
	c.Y = [3]string{english.Number(top), english.Number(top / 2), "0"}
	step := float64(chartWidth) / float64(max(1, len(buckets)))
	width := max(1, step-max(1, step/10))
	bottoms := make([]int64, len(buckets))
	for _, p := range parts {
		var path strings.Builder
		for i := range buckets {
			n := p.of(&buckets[i].counts)
			if n == 0 {
				continue
			}
			y0, y1 := scale(bottoms[i], top), scale(bottoms[i]+n, top)
			bottoms[i] += n
			fmt.Fprintf(&path, "M%s %sV%sh%sV%sz", short(float64(i)*step+(step-width)/2), short(y0), short(y1), short(width), short(y0))
		}
		if path.Len() > 0 {
			c.Layers = append(c.Layers, layer{p.class, p.name, path.String()})
		}
	}
	for i := range buckets {
		b := &buckets[i]
		if i%s.every == 0 {
			c.X = append(c.X, b.Start.Format(s.label))
		}
		if s.width < 24*time.Hour || b.All == 0 {
			continue // an hour does not have its own page
		}
		first, last := b.Start.Format(time.DateOnly), b.Start.Add(s.width-1).Format(time.DateOnly)
		text := map[bool]string{true: "week of "}[s.width > 24*time.Hour] + b.Start.Format("2 Jan: ") + plural(b.All, "request", "requests")
		q := maps.Clone(v.q)
		q.Del("days")
		q.Set("since", first)
		q.Set("until", last)
		c.Bars = append(c.Bars, bar{short(float64(i) * step), short(step), text, "?" + q.Encode()})
	}
	return c
}

func scale(n, top int64) float64 { return chartHeight - chartHeight*float64(n)/float64(top) }

func short(f float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(f, 'f', 1, 64), ".0")
}

// niceTop returns the smallest round and even number that is at least n.
func niceTop(n int64) int64 {
	for unit := int64(1); ; unit *= 10 {
		for _, m := range []int64{2, 4, 6, 8, 10} {
			if m*unit >= n {
				return m * unit
			}
		}
	}
}

// spark is a small line chart without axes.
type spark struct {
	Label   string
	Points  string
	Part    string // the last segment, which shows a day that is not over yet
	Dropped bool
}

// newSpark draws a small line chart. counts has the number of requests in each unit of time, such as a day.
func newSpark(counts []int64, unit string) (s spark) {
	const width, height, edge, most = 84.0, 20.0, 2.0, 60 // more than 60 points would not be visible
	texts := make([]string, len(counts))
	by := max(1, (len(counts)+most-1)/most)
	rest := len(counts) % by // number of counts to omit at the start, so that every point is the sum of the same number of counts
	sums, top := make([]int64, len(counts)/by), int64(1)
	for i, n := range counts {
		texts[i] = english.Number(n)
		if at := (i - rest) / by; i >= rest {
			sums[at] += n
			top = max(top, sums[at])
		}
	}
	s.Label = "Requests per " + unit + ": " + strings.Join(texts, ", ")
	if len(counts) > 31 {
		s.Label = fmt.Sprintf("Requests per %s over %d %ss; the highest number is %s", unit, len(counts), unit, english.Number(slices.Max(counts)))
	}
	points := make([]string, len(sums))
	for i, n := range sums {
		x := edge + (width-2*edge)*float64(i)/float64(max(1, len(sums)-1))
		points[i] = short(x) + "," + short(height-edge-(height-2*edge)*float64(n)/float64(top))
	}
	if n := len(points); n > 1 {
		s.Points, s.Part = strings.Join(points[:n-1], " "), points[n-2]+" "+points[n-1]
	} else {
		s.Points = strings.Join(points, " ")
	}
	return s
}

// meter is a bar that shows shares of a whole.
type meter struct{ Parts []meterPart }

type meterPart struct{ Class, X, Width string }

func newMeter(c *counts, most int64) meter {
	var m meter
	at := 0.0
	for _, p := range parts {
		w := 100 * float64(p.of(c)) / float64(max(1, most))
		if w < 0.05 {
			continue
		}
		class := p.class
		if class == "f-would" {
			class = "f-would-plain" // the striped pattern would look wrong if it were stretched this far
		}
		m.Parts = append(m.Parts, meterPart{class, short(at), short(w)})
		at += w
	}
	return m
}
