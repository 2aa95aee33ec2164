// SPDX-License-Identifier: Apache-2.0

package accesslog

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/claim"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
)

// Result describes the readable and the unreadable lines of a log.
type Result struct {
	Lines int64 // all lines except empty ones and comments
	Other int64 // lines without a request: of other loggers or programs, or about clients that did not send HTTP
	Bad   int64 // lines that could not be read
	Gaps  []claim.Gap
}

// The names of the gaps of a Result.
const (
	GapLines      = "unreadable-lines"   // lines that are cut off or in another format
	GapArchive    = "incomplete-archive" // a compressed file that ends early
	GapUserAgents = "no-user-agents"     // requests whose lines have no User-Agent, so that their crawler is unknown
)

// closes maps each gap to advice on how to avoid the gap.
var closes = map[string]string{
	GapLines:      "give the complete log, or describe its lines with --format",
	GapArchive:    "copy the file again from the server that wrote it, or give the uncompressed log",
	GapUserAgents: "add the User-Agent to the server's log, for example with the format combined",
}

// lacks adds a gap to the result: n items of the given file are missing. If n is 0, their number is not known. unit is
// the word for one item, "line" or "request". what describes the items, such as "that could not be read", and why gives
// the reason. The text of the gap is, for example, "3 lines that could not be read, in access.log: REASON".
func (r *Result) lacks(name, file string, n int64, unit, what, why string) {
	of := "an unknown number of " + unit + "s"
	if n > 0 {
		of = english.Number(n) + " " + unit + "s"
	}
	if n == 1 {
		of = "1 " + unit
	}
	r.Gaps = append(r.Gaps, claim.Gap{Name: name, Count: n, What: of + " " + what + ", in " + file + ": " + why, Close: closes[name]})
}

// kind is the kind of a line without a readable request.
type kind int

const (
	damaged   kind = iota
	plain          // cannot be parsed and has no brace; in a JSON log, such a line comes from another program
	noRequest      // can be parsed, but is not about a request
	kinds
)

// count holds the number of lines of each kind in a file.
type count struct {
	read       int64 // lines with a request
	structured int64 // lines in JSON, with or without text before the JSON
	named      int64 // lines with a User-Agent
	agentless  int64 // lines in a format without User-Agents, or with a redacted User-Agent
	unread     [kinds]int64
	first      [kinds]badLine
}

// badLine describes the first line of one kind in a file.
type badLine struct {
	chunk int // number of the chunk; 0 if there is no such line
	text  string
	why   error
}

func (c *count) good(r *Record, line []byte) {
	c.read++
	if line[len(line)-1] == '}' {
		c.structured++
	}
	switch {
	case r.Agentless || string(r.UserAgent) == "REDACTED":
		c.agentless++
	case len(r.UserAgent) > 0:
		c.named++
	}
}

func (c *count) bad(chunk int, line []byte, why error) {
	k := damaged
	if errors.Is(why, errNoRequest) {
		k = noRequest
	} else if bytes.IndexByte(line, '{') < 0 && bytes.IndexByte(line, '}') < 0 {
		k = plain
	}
	c.unread[k]++
	if c.first[k].chunk == 0 {
		c.first[k] = badLine{chunk, string(line[:min(len(line), 4000)]), why}
	}
}

func (c *count) add(o *count) {
	c.read += o.read
	c.structured += o.structured
	c.named += o.named
	c.agentless += o.agentless
	for k, n := range o.unread {
		c.unread[k] += n
		if first := o.first[k]; first.chunk > 0 && (c.first[k].chunk == 0 || first.chunk < c.first[k].chunk) {
			c.first[k] = first
		}
	}
}

// shown returns the line, shortened for a message.
func (l *badLine) shown() string {
	const most = 200
	text := english.OneLine(strings.ToValidUTF8(l.text[:min(len(l.text), most)], "\uFFFD"))
	if len(l.text) > most {
		text += "…"
	}
	return text
}

// file adds the counts of a file to the result. It returns an error if the file has lines, but none could be read.
func (r *Result) file(name string, c *count) error {
	bad, other := []kind{damaged, plain}, []kind{noRequest}
	if c.read > 0 && c.read == c.structured {
		bad, other = bad[:1], []kind{plain, noRequest}
	}
	r.Lines += c.read
	for _, k := range other {
		r.Other += c.unread[k]
		r.Lines += c.unread[k]
	}
	unread := int64(0)
	var first *badLine
	for _, k := range bad {
		unread += c.unread[k]
		if first == nil && c.unread[k] > 0 {
			first = &c.first[k]
		}
	}
	r.Lines += unread
	r.Bad += unread
	switch {
	case c.read > 0:
	case first != nil:
		return fmt.Errorf("%s: %w", name, refusal(first))
	case c.unread[noRequest] > 0:
		return fmt.Errorf("%s: %w", name, refusal(&c.first[noRequest]))
	}
	if first != nil {
		r.lacks(GapLines, name, unread, "line", "that could not be read", fmt.Sprintf("the first of them (%s) is %s", first.why, first.shown()))
	}
	switch {
	case c.read > 0 && c.named == 0:
		r.lacks(GapUserAgents, name, c.read, "request", "without a User-Agent", "no line of the log has a User-Agent, so the crawlers in it are unknown")
	case c.agentless > 0:
		r.lacks(GapUserAgents, name, c.agentless, "request", "without a User-Agent", "other lines of the log have a User-Agent, so these lines are cut off or in another format")
	}
	return nil
}
