// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/activity/store"
	"github.com/robotspolicy/caddy-robots-policy/crawlers"
)

// prometheus asks a server that speaks PromQL. It implements traffic with the counters
// of every node, so its numbers are what PromQL's increase makes of them.
type prometheus struct {
	base   *url.URL
	client *http.Client

	mu     sync.Mutex
	recent map[string]remembered
}

// remembered is an answer that is given again for a while.
type remembered struct {
	at      time.Time
	samples []sample
}

// sample is a series of an answer: one value, or several with their times.
type sample struct {
	Metric map[string]string `json:"metric"`
	Value  point             `json:"value"`
	Values []point           `json:"values"`
}

// point is a value at a time, as the HTTP API writes it: [seconds, "value"].
type point struct {
	time  time.Time
	value float64
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *point) UnmarshalJSON(b []byte) error {
	var pair [2]any
	if err := json.Unmarshal(b, &pair); err != nil {
		return err
	}
	at, ok := pair[0].(float64)
	text, isText := pair[1].(string)
	if !ok || !isText {
		return fmt.Errorf("%s is not a point", b)
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(value) || math.IsInf(value, 0) {
		value = 0
	}
	p.time, p.value = time.UnixMilli(int64(at*1000)).UTC(), value
	return nil
}

func newPrometheus(base *url.URL) *prometheus {
	return &prometheus{base: base, client: &http.Client{Timeout: 10 * time.Second}, recent: map[string]remembered{}}
}

const (
	rememberFor  = 10 * time.Second
	maxRemember  = 300
	maxPromReply = 16 << 20
)

// instant asks for values at a time.
func (p *prometheus) instant(ctx context.Context, query string, at time.Time) ([]sample, error) {
	return p.ask(ctx, "query", url.Values{"query": {query}, "time": {seconds(at)}})
}

// between asks for values at every step of a span.
func (p *prometheus) between(ctx context.Context, query string, from, to time.Time, step time.Duration) ([]sample, error) {
	return p.ask(ctx, "query_range", url.Values{"query": {query}, "start": {seconds(from)}, "end": {seconds(to)}, "step": {strconv.Itoa(int(step.Seconds()))}})
}

func seconds(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }

func (p *prometheus) ask(ctx context.Context, endpoint string, form url.Values) ([]sample, error) {
	key := endpoint + "?" + form.Encode()
	p.mu.Lock()
	known, ok := p.recent[key]
	p.mu.Unlock()
	if ok && time.Since(known.at) < rememberFor {
		return known.samples, nil
	}
	samples, err := p.post(ctx, endpoint, form)
	if err != nil {
		return nil, fmt.Errorf("asking %s failed: %w", p.base.Host, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.recent) >= maxRemember {
		clear(p.recent)
	}
	p.recent[key] = remembered{time.Now(), samples}
	return samples, nil
}

func (p *prometheus) post(ctx context.Context, endpoint string, form url.Values) ([]sample, error) {
	u := p.base.JoinPath("api/v1", endpoint)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := p.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var answer struct {
		Status, Error string
		Data          struct{ Result []sample }
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, maxPromReply)).Decode(&answer); err != nil {
		return nil, fmt.Errorf("status %d: %w", response.StatusCode, err)
	}
	if answer.Status != "success" {
		return nil, fmt.Errorf("status %d: %s", response.StatusCode, answer.Error)
	}
	return answer.Data.Result, nil
}

// The counters that the recorder `metrics` and the handlers keep.
const (
	metricVisits     = "caddy_robots_policy_visits_total"
	metricBytes      = "caddy_robots_policy_visit_bytes_total"
	metricViolations = "caddy_robots_policy_violations_total"
)

// labelOf are the labels of the dimensions that metrics have. The kind follows from
// the crawler.
var labelOf = map[store.Dimension]string{
	store.ByHost: "host", store.ByCrawler: "crawler", store.ByIdentity: "identity", store.ByDecision: "decision", store.ByKind: "crawler",
}

// Totals implements traffic. What metrics do not have, such as paths, is answered with
// nothing.
func (p *prometheus) Totals(ctx context.Context, q store.Query) ([]store.Row, error) {
	if q.Violating {
		return p.violations(ctx, q)
	}
	var labels []string
	for _, d := range q.By {
		label, ok := labelOf[d]
		if !ok && d != store.ByHour && d != store.ByDay {
			return nil, nil
		}
		if label != "" && !slices.Contains(labels, label) {
			labels = append(labels, label)
		}
	}
	selector, ok := selectorOf(q)
	if !ok {
		return nil, nil
	}
	by := "sum by (" + strings.Join(labels, ", ") + ") "
	sums := newRowSums(q)
	if step := stepOf(q); step > 0 {
		// The value at the end of a step is what was added in it.
		query := fmt.Sprintf("%s(increase(%s%s[%ds]))", by, metricVisits, selector, int(step.Seconds()))
		samples, err := p.between(ctx, query, q.From.Add(step), q.To.Add(step), step)
		for _, s := range samples {
			for _, v := range s.Values {
				sums.add(s.Metric, v.time.Add(-step), func(r *store.Row) { r.Requests += round(v.value) })
			}
		}
		return sums.rows(), err
	}
	to := q.To
	if now := time.Now(); to.After(now) {
		to = now.Truncate(rememberFor)
	}
	length := int(to.Sub(q.From).Seconds())
	for metric, add := range map[string]func(*store.Row, int64){
		metricVisits: func(r *store.Row, n int64) { r.Requests += n }, metricBytes: func(r *store.Row, n int64) { r.Bytes += n },
	} {
		samples, err := p.instant(ctx, fmt.Sprintf("%s(increase(%s%s[%ds]))", by, metric, selector, length), to)
		if err != nil {
			return nil, err
		}
		for _, s := range samples {
			sums.add(s.Metric, time.Time{}, func(r *store.Row) { add(r, round(s.Value.value)) })
		}
	}
	if slices.Contains(q.By, store.ByCrawler) && len(q.Only[store.ByHost]) == 0 {
		if err := p.addViolations(ctx, sums, length, to); err != nil {
			return nil, err
		}
	}
	return sums.rows(), nil
}

func round(f float64) int64 { return int64(math.Round(f)) }

// stepOf is the length of an hour or day, where a question asks for them.
func stepOf(q store.Query) time.Duration {
	switch {
	case slices.Contains(q.By, store.ByHour):
		return time.Hour
	case slices.Contains(q.By, store.ByDay):
		return 24 * time.Hour
	}
	return 0
}

// selectorOf is the part of a query in braces; false where metrics cannot tell.
func selectorOf(q store.Query) (string, bool) {
	var parts []string
	for d, values := range q.Only {
		if d == store.ByKind {
			return "", false
		}
		label, ok := labelOf[d]
		if !ok {
			return "", false
		}
		quoted := make([]string, len(values))
		for i, v := range values {
			quoted[i] = regexp.QuoteMeta(v)
		}
		parts = append(parts, label+"=~"+strconv.Quote(strings.Join(quoted, "|")))
	}
	if len(parts) == 0 {
		return "", true
	}
	slices.Sort(parts)
	return "{" + strings.Join(parts, ", ") + "}", true
}

// addViolations adds the violations of each crawler to its row with the most requests.
func (p *prometheus) addViolations(ctx context.Context, sums *rowSums, length int, to time.Time) error {
	samples, err := p.instant(ctx, fmt.Sprintf("sum by (crawler) (increase(%s[%ds]))", metricViolations, length), to)
	if err != nil {
		return err
	}
	for _, s := range samples {
		var most *store.Row
		for _, r := range sums.order {
			if r.Values[store.ByCrawler] == s.Metric["crawler"] && r.Values[store.ByIdentity] != string(activity.Impostor) && (most == nil || r.Requests > most.Requests) {
				most = r
			}
		}
		if most != nil {
			most.Violations += round(s.Value.value)
		}
	}
	return nil
}

func (p *prometheus) violations(ctx context.Context, q store.Query) ([]store.Row, error) {
	to := q.To
	if now := time.Now(); to.After(now) {
		to = now.Truncate(rememberFor)
	}
	samples, err := p.instant(ctx, fmt.Sprintf("sum by (crawler, rule) (increase(%s[%ds]))", metricViolations, int(to.Sub(q.From).Seconds())), to)
	var rows []store.Row
	for _, s := range samples {
		if n := round(s.Value.value); n > 0 {
			rows = append(rows, store.Row{Values: map[store.Dimension]string{store.ByCrawler: s.Metric["crawler"], store.ByRule: s.Metric["rule"]}, Requests: n, Violations: n})
		}
	}
	slices.SortFunc(rows, func(a, b store.Row) int { return cmp.Compare(b.Violations, a.Violations) })
	return rows, err
}

// rowSums gathers samples into rows.
type rowSums struct {
	query store.Query
	by    map[string]*store.Row
	order []*store.Row
}

func newRowSums(q store.Query) *rowSums { return &rowSums{query: q, by: map[string]*store.Row{}} }

func (s *rowSums) add(metric map[string]string, start time.Time, add func(*store.Row)) {
	values := map[store.Dimension]string{}
	key := start.Format(time.RFC3339)
	for _, d := range s.query.By {
		switch {
		case d == store.ByKind:
			values[d] = kindOf(metric["crawler"])
		case labelOf[d] != "":
			values[d] = metric[labelOf[d]]
		}
		key += "\x00" + values[d]
	}
	row := s.by[key]
	if row == nil {
		row = &store.Row{Start: start, Values: values}
		s.by[key] = row
		s.order = append(s.order, row)
	}
	add(row)
}

func (s *rowSums) rows() []store.Row {
	var all []store.Row
	for _, r := range s.order {
		if r.Requests > 0 || r.Violations > 0 {
			all = append(all, *r)
		}
	}
	slices.SortStableFunc(all, func(a, b store.Row) int {
		return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(b.Requests, a.Requests))
	})
	return all
}

// kindOf is the kind of a crawler in the built-in catalogue.
func kindOf(crawler string) string {
	if builtIn, err := crawlers.Default(); err == nil {
		if row, ok := builtIn.Lookup(crawler); ok {
			return string(row.Kind)
		}
	}
	if crawler == activity.KindUnknown {
		return activity.KindUnknown
	}
	return ""
}

// Crawlers implements traffic. Metrics do not say when a crawler was seen.
func (p *prometheus) Crawlers(ctx context.Context) ([]store.Crawler, error) {
	samples, err := p.instant(ctx, "group by (crawler) ("+metricVisits+")", time.Now().Truncate(rememberFor))
	all := make([]store.Crawler, len(samples))
	for i, s := range samples {
		name := s.Metric["crawler"]
		all[i] = store.Crawler{Name: name, Kind: kindOf(name)}
	}
	return all, err
}
