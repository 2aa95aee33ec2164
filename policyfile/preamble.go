// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// maxPreamble is how long a preamble may be, in bytes.
const maxPreamble = 32 << 10

// otherHosts stands for the hosts that a map of preambles does not name.
const otherHosts = "*"

func readPreamble(p *parser, n *yaml.Node, b *policy.Publish) {
	if n.Kind != yaml.MappingNode {
		p.preamble(n, "", b)
		return
	}
	p.eachPair(n, "preamble", func(key, value *yaml.Node) {
		host := policy.Host("")
		if key.Value != otherHosts {
			var err error
			if host, err = policy.ParseHost(key.Value); err != nil {
				p.report(posOf(key), "bad-host", "", "%s: %s", quote(key.Value), err)
				return
			}
		}
		p.preamble(value, host, b)
	})
}

func (p *parser) preamble(n *yaml.Node, host policy.Host, b *policy.Publish) {
	control := func(c rune) bool {
		return c < ' ' && c != '\n' && c != '\t' || c == 0x7f || c == 0x85 || c == 0x2028 || c == 0x2029
	}
	text := strings.Trim(strings.ReplaceAll(n.Value, "\r\n", "\n"), "\n")
	switch {
	case p.skip[n]:
	case n.Kind != yaml.ScalarNode:
		p.report(posOf(n), "wrong-kind", "", "preamble must be a text, not %s", kindOf(n))
	case strings.TrimSpace(text) == "":
		p.report(posOf(n), "no-value", "", "preamble has no value; write one, or delete the line")
	case strings.ContainsFunc(text, control):
		p.report(posOf(n), "bad-value", "", "preamble has control characters; write plain text")
	case len(text) > maxPreamble:
		p.report(posOf(n), "bad-value", "", "a preamble can have up to %d KiB; put longer texts on a page, and its address here", maxPreamble>>10)
	default:
		b.Preambles = append(b.Preambles, policy.Preamble{Host: host, Text: text})
	}
}

func printPreamble(w *printer, b *policy.Publish) {
	if len(b.Preambles) == 1 && b.Preambles[0].Host == "" {
		w.block("preamble", b.Preambles[0].Text)
		return
	}
	w.under("preamble", func() {
		for _, a := range b.Preambles {
			host := string(a.Host)
			if host == "" {
				host = otherHosts
			}
			w.block(scalar(host), a.Text)
		}
	})
}

// block writes lines of text as they stand.
func (w *printer) block(key, text string) {
	start := ": |"
	if text[0] == ' ' || text[0] == '\t' {
		start = ": |2" // or the text would look indented
	}
	w.line(key + start)
	w.indent++
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimRight(line, " \t"); line == "" {
			w.out.WriteByte('\n')
			continue
		}
		w.line(line)
	}
	w.indent--
}
