// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"regexp"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

const (
	limitPattern = `^[1-9][0-9]{0,5}/[smhd]$`
	maxBurst     = 100_000
)

var limitRate = regexp.MustCompile(limitPattern)

var limitUnits = map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}

var (
	rateShape   = textShape("requests in each second (s), minute (m), hour (h) or day (d), such as 60/m", limitPattern)
	limitFields = fields[*policy.Limit]{
		key("rate", "how many requests in each second, minute, hour or day, such as 60/m", rateShape, readRate, nil).must(),
		key("burst", "how many of them at once, after a pause; the default is the number in rate",
			shape{"type": "integer", "minimum": 1, "maximum": maxBurst}, readBurst, nil),
	}
	limitShape = shape{"anyOf": []any{shape{"const": "none"}, rateShape, mapShape(limitFields)}}
)

// readLimit reads `none`, a rate such as 60/m, or a rate with a burst.
func readLimit(p *parser, n *yaml.Node, r *ruleReader) {
	r.rule.LimitPos = posOf(n)
	limit := policy.Limit{}
	if n.Kind == yaml.MappingNode {
		readMap(p, n, "limit", limitFields, &limit)
	} else if n.Value == "none" {
		r.rule.NoLimit = true
		return
	} else {
		readRate(p, n, &limit)
	}
	if limit.IsZero() {
		return // reported
	}
	if limit.Burst == 0 {
		limit.Burst = min(limit.Requests, maxBurst)
	}
	r.rule.Limit = limit
}

func readRate(p *parser, n *yaml.Node, l *policy.Limit) {
	text, ok := p.text(n, "limit")
	if !ok {
		return
	}
	if !limitRate.MatchString(text) {
		p.report(posOf(n), "bad-value", sameMeaning(text, []string{"none"}), "invalid limit %s: must be a number of requests in each second (s), minute (m), hour (h) or day (d), such as 60/m, or none", quote(text))
		return
	}
	end := len(text) - len("/m")
	l.Requests, _ = strconv.Atoi(text[:end])
	l.Per = limitUnits[text[end+1]]
}

func readBurst(p *parser, n *yaml.Node, l *policy.Limit) {
	text, ok := p.text(n, "burst")
	if !ok {
		return
	}
	burst, err := strconv.Atoi(text)
	if err != nil || burst < 1 || burst > maxBurst {
		p.report(posOf(n), "bad-value", "", "invalid burst %s: must be a number of requests from 1 to %d", quote(text), maxBurst)
		return
	}
	l.Burst = burst
}

func printLimit(w *printer, r *ruleReader) {
	l := r.rule.Limit
	switch {
	case r.rule.NoLimit:
		w.plain("limit", "none")
	case l.IsZero():
	case l.Burst == l.Requests:
		w.plain("limit", l.String())
	default:
		w.plain("limit", "{rate: "+l.String()+", burst: "+strconv.Itoa(l.Burst)+"}")
	}
}
