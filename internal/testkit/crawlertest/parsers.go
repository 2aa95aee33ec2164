// SPDX-License-Identifier: Apache-2.0

package crawlertest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// Parser is a reader of robots.txt in another language.
type Parser struct {
	Name string
	// Programs are the commands that can run Script. The first one that can run Probe is used.
	Programs [][]string
	Probe    string
	Script   string
	// Authority means that the parser reads "//" at the start of a path as the start of a host.
	Authority bool
	// Resolves means that the parser removes dot segments from a path before it compares the path.
	Resolves bool
	// Prefixes means that "*" and "$" have no special meaning for the parser.
	Prefixes bool
	// Rejects matches lines that make the parser reject a whole file. It is nil if there are no such lines.
	Rejects *regexp.Regexp
	// TimedOnly means that the parser does not claim to find the longest match. Tests only check whether it answers in
	// time.
	TimedOnly bool
}

// AnswerTime is the time that a parser may take for one file and its questions. Patterns with
// many asterisks make some parsers run for minutes.
const AnswerTime = 20 * time.Second

var (
	plainPaths = regexp.MustCompile(`^[A-Za-z0-9/._?=-]*$`)
	ruleLine   = regexp.MustCompile(`(?im)^(?:dis)?allow:[ \t]*(\S*)`)
)

// UnderstandsPath reports whether tests can expect the parser to treat a path as RFC 9309 requires. It returns false
// for paths with unusual characters, such as "%", or an empty query, because parsers treat such paths in different
// ways. For some parsers, it also returns false for paths that begin with "//" or contain "/.".
func (p *Parser) UnderstandsPath(path string) bool {
	return plainPaths.MatchString(path) && !strings.HasSuffix(path, "?") &&
		(!p.Authority || !strings.HasPrefix(path, "//")) && (!p.Resolves || !strings.Contains(path, "/."))
}

// UnderstandsFile reports whether tests can expect the parser to treat a file as RFC 9309 requires.
func (p *Parser) UnderstandsFile(body string) bool {
	if p.Rejects != nil && p.Rejects.MatchString(body) {
		return false
	}
	for _, m := range ruleLine.FindAllStringSubmatch(body, -1) {
		if strings.Contains(m[1], "%") || p.Authority && strings.HasPrefix(m[1], "//") || p.Prefixes && strings.ContainsAny(m[1], "*$") {
			return false
		}
	}
	return true
}

// pythonLoop is the end of each Python script in Parsers. A script reads one JSON object per line, with a file and
// questions about this file. It writes the answers as one JSON array per line.
const pythonLoop = `
for line in sys.stdin:
    f = json.loads(line)
    print(json.dumps(answers(f["body"], f["asks"] or [])), flush=True)
`

// Parsers lists the parsers that tests compare with this program, if they are installed.
var Parsers = []Parser{
	{
		Name: "urllib.robotparser", Programs: [][]string{{"python3", "-c"}}, Probe: "import urllib.robotparser",
		Script: `
import sys, json, urllib.robotparser
def answers(body, asks):
    p = urllib.robotparser.RobotFileParser()
    p.parse(body.splitlines())
    return [p.can_fetch(t, "http://www.example.com" + u) for t, u in asks]
` + pythonLoop,
		Authority: true, Prefixes: true,
	},
	{
		Name: "Protego", Programs: [][]string{{"python3", "-c"}, {"/usr/bin/python3", "-c"}}, Probe: "import protego",
		Script: `
import sys, json, protego
def answers(body, asks):
    p = protego.Protego.parse(body)
    return [p.can_fetch("http://www.example.com" + u, t) for t, u in asks]
` + pythonLoop,
		Authority: true,
	},
	{
		Name: "robots-parser", Programs: [][]string{{"node", "-e"}}, Probe: "require('robots-parser')",
		Script: `
const parse = require('robots-parser');
require('readline').createInterface({input: process.stdin}).on('line', line => {
  const f = JSON.parse(line);
  const p = parse('http://www.example.com/robots.txt', f.body);
  console.log(JSON.stringify((f.asks || []).map(([t, u]) => p.isAllowed('http://www.example.com' + u, t))));
});`,
		Resolves: true,
	},
	{
		Name: "webrobots", Programs: [][]string{{"ruby", "-e"}}, Probe: "require 'webrobots'",
		Script: `
require 'webrobots'
require 'webrobots/robotstxt'
require 'json'
require 'uri'
STDIN.each_line do |line|
  f = JSON.parse(line)
  r = WebRobots::RobotsTxt::Parser.new(nil).parse!(f['body'], URI('http://www.example.com/'))
  raise r.error if r.error
  puts JSON.generate((f['asks'] || []).map { |t, u| r.allow?(u, t) })
  STDOUT.flush
end`,
		// webrobots rejects files with these lines, because in its grammar a record always starts with a User-agent
		// line.
		Rejects: regexp.MustCompile(`(?m)^(License|ACAP-)`),
	},
	{
		Name: "robots-txt-parser", Programs: [][]string{{"node", "-e"}}, Probe: "require('robots-txt-parser')",
		Script: `
const make = require('robots-txt-parser');
require('readline').createInterface({input: process.stdin}).on('line', line => {
  const f = JSON.parse(line);
  const p = make({allowOnNeutral: true});
  p.parseRobots('http://www.example.com', f.body);
  console.log(JSON.stringify((f.asks || []).map(([t, u]) => { p.setUserAgent(t); return p.canCrawlSync(u); })));
});`,
		TimedOnly: true,
	},
	{
		Name: "Google", Programs: [][]string{{"python3", "-c"}}, Probe: googleProbe,
		Script: googleLoad + `
import json
def answers(body, asks):
    b = body.encode()
    return [bool(lib.allowed(b, len(b), t.encode(), ("http://www.example.com" + u).encode())) for t, u in asks]
` + pythonLoop,
	},
}

// Process is a running parser. Several goroutines may call Ask at the same time.
type Process struct {
	mu   sync.Mutex
	name string
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
}

// Start starts a parser. It returns nil if the parser is not installed.
func (p *Parser) Start() (*Process, error) {
	for _, program := range p.Programs {
		if exec.Command(program[0], append(slices.Clone(program[1:]), p.Probe)...).Run() != nil {
			continue
		}
		cmd := exec.Command(program[0], append(slices.Clone(program[1:]), p.Script)...)
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			return nil, err
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			return nil, err
		}
		return &Process{name: p.Name, cmd: cmd, in: in, out: bufio.NewReader(out)}, cmd.Start()
	}
	return nil, nil
}

// Ask passes a file to the parser. For each pair of a product token and a path, it returns whether the crawler may
// fetch the path. It kills a parser that takes longer than AnswerTime.
func (p *Process) Ask(body string, asks [][2]string) ([]bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	late := time.AfterFunc(AnswerTime, func() { _ = p.cmd.Process.Kill() })
	if err := json.NewEncoder(p.in).Encode(map[string]any{"body": body, "asks": asks}); err != nil {
		return nil, err
	}
	line, err := p.out.ReadBytes('\n')
	if !late.Stop() {
		return nil, fmt.Errorf("%s took longer than %v for %.500q", p.name, AnswerTime, body)
	}
	if err != nil {
		return nil, fmt.Errorf("no answer from %s to %.500q: %w", p.name, body, err)
	}
	var answers []bool
	if err := json.Unmarshal(line, &answers); err != nil {
		return nil, err
	}
	if len(answers) != len(asks) {
		return nil, fmt.Errorf("%d answers to %d questions", len(answers), len(asks))
	}
	return answers, nil
}

// Close ends the process.
func (p *Process) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(p.in.Close(), p.cmd.Wait())
}
