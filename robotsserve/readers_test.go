// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/internal/policytest"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// reader is a parser in another language. The program reads a list of files with
// questions as JSON and writes the answers likewise.
type reader struct {
	name    string
	program [][]string // the first that runs is taken
	probe   string
	script  string
	kinds   []string
	python  bool
}

type asked struct {
	Body string      `json:"body"`
	Asks [][2]string `json:"asks"` // token and path

	want []bool
	file *File
	of   *policy.Policy
}

var readers = []reader{
	{
		name: "urllib.robotparser", program: [][]string{{"python3", "-c"}}, probe: "import urllib.robotparser",
		script: `
import sys, json, urllib.robotparser
out = []
for f in json.load(sys.stdin):
    p = urllib.robotparser.RobotFileParser()
    p.parse(f["body"].splitlines())
    out.append([p.can_fetch(t, "http://www.example.com" + u) for t, u in f["asks"]])
json.dump(out, sys.stdout)`,
		kinds: []string{"plain"}, python: true,
	},
	{
		name: "Protego", program: [][]string{{"python3", "-c"}, {"/usr/bin/python3", "-c"}}, probe: "import protego",
		script: `
import sys, json, protego
out = []
for f in json.load(sys.stdin):
    p = protego.Protego.parse(f["body"])
    out.append([p.can_fetch("http://www.example.com" + u, t) for t, u in f["asks"]])
json.dump(out, sys.stdout)`,
		kinds:  []string{"any", "plain", "many rules", "ties", "padded and shadowed"},
		python: true,
	},
	{
		name: "robots-parser", program: [][]string{{"node", "-e"}}, probe: "require('robots-parser')",
		script: `
const parse = require('robots-parser');
const files = JSON.parse(require('fs').readFileSync(0, 'utf8'));
console.log(JSON.stringify(files.map(f => {
  const p = parse('http://www.example.com/robots.txt', f.body);
  return f.asks.map(([t, u]) => p.isAllowed('http://www.example.com' + u, t));
})));`,
		kinds: []string{"any", "plain", "many rules", "ties", "padded and shadowed"},
	},
}

// noAuthority keeps a policy and paths clear of "//" at the start, which Python's
// urlparse takes for a host: see TestPythonReadsAuthorities.
func noAuthority(spec *policy.Spec) {
	for i := range spec.Rules {
		spec.Rules[i].Statements = slices.DeleteFunc(spec.Rules[i].Statements, func(s policy.Statement) bool {
			return strings.HasPrefix(s.Pattern.String(), "//")
		})
	}
}

// command returns the program of a reader, nil when it is not installed.
func (rd *reader) command() []string {
	for _, p := range rd.program {
		if exec.Command(p[0], append(p[1:], rd.probe)...).Run() == nil {
			return append(slices.Clone(p), rd.script)
		}
	}
	return nil
}

func TestOtherReadersAgreeWithDecide(t *testing.T) {
	for _, rd := range readers {
		t.Run(rd.name, func(t *testing.T) {
			command := rd.command()
			if command == nil {
				t.Skipf("%s is not installed: none of %q runs %q", rd.name, rd.program, rd.probe)
			}
			r := rand.New(rand.NewPCG(*seed, 3))
			var files []asked
			for _, k := range kinds {
				if !slices.Contains(rd.kinds, k.name) {
					continue
				}
				for range *policies / 3 {
					spec := policytest.Random(r, k.options)
					if k.change != nil {
						k.change(r, spec)
					}
					publish(t, r, spec)
					if rd.python {
						noAuthority(spec)
					}
					files = append(files, ask(t, r, spec, k.name, rd.python))
				}
			}
			counts := check(t, &rd, command, files)
			t.Log(counts)
		})
	}
}

func ask(t *testing.T, r *rand.Rand, spec *policy.Spec, kind string, python bool) asked {
	p := compile(t, spec)
	host := policytest.Hosts[r.IntN(len(policytest.Hosts))]
	a := asked{file: render(t, p, host), of: p, Asks: [][2]string{}}
	a.Body = string(a.file.Body)
	for range 6 {
		path := path(r, kind)
		if path == "/robots.txt" || python && strings.HasPrefix(path, "//") {
			continue
		}
		for _, token := range tokens {
			a.Asks = append(a.Asks, [2]string{token, path})
			a.want = append(a.want, decide(p, token, host, path))
		}
	}
	return a
}

func run(t *testing.T, command []string, files []asked) [][]bool {
	t.Helper()
	in, err := json.Marshal(files)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin = bytes.NewReader(in)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.Bytes())
	}
	var answers [][]bool
	if err := json.Unmarshal(out, &answers); err != nil || len(answers) != len(files) {
		t.Fatalf("%v: %d answers for %d files", err, len(answers), len(files))
	}
	return answers
}

func check(t *testing.T, rd *reader, command []string, files []asked) map[string]int {
	t.Helper()
	answers := run(t, command, files)
	counts := map[string]int{}
	for i, f := range files {
		for j, got := range answers[i] {
			token, path, want := f.Asks[j][0], f.Asks[j][1], f.want[j]
			counts["decisions"]++
			if !want {
				counts["disallowed"]++
			}
			if got == want {
				continue
			}
			if !want || !lost(f.file, token, path) {
				t.Fatalf("%q may fetch %q: %s says %v, the policy %v of\n%s\n%s", token, path, rd.name, got, want, f.Body, describe(f.of.Spec()))
			}
			counts["not-flattenable"]++
		}
	}
	return counts
}

// TestPythonReadsAuthorities is why noAuthority is: if it fails, that can go.
func TestPythonReadsAuthorities(t *testing.T) {
	for _, rd := range readers {
		command := rd.command()
		if !rd.python || command == nil {
			continue
		}
		answers := run(t, command, []asked{{Body: "User-agent: *\nDisallow: ///\n", Asks: [][2]string{{"ZetaBot", "/a"}, {"ZetaBot", "///a"}}}})
		if slices.Equal(answers[0], []bool{true, false}) {
			t.Errorf("%s reads \"Disallow: ///\" as RFC 9309 does: %v", rd.name, answers[0])
		}
	}
}
