// SPDX-License-Identifier: Apache-2.0

package site

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/temoto/robotstxt"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/crawlertest"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/policytest"
	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
)

// allRegisters switches on all rights documents and signals.
var allRegisters = policy.Publish{
	ACAP: policy.Full, ContentUsage: policy.On, ContentSignal: policy.On, ContentSignalUse: "reference", Controls: policy.Auto,
	UsageTokens: policytest.UsageTokens, TDMRep: policy.On, RSL: "/license.xml",
}

// registerFile holds two versions of a policy's robots.txt: one without rights documents and signals, and one with all
// of them.
type registerFile struct {
	without, with string
	asks          [][2]string // product token and path
}

// registerFiles returns files for the example policies and for random policies.
func registerFiles(t *testing.T) (files []registerFile) {
	t.Helper()
	add := func(spec policy.Spec, asks [][2]string) {
		spec.Rules = append(spec.Rules, policy.Rule{For: []policy.Audience{{Kind: policy.ForEveryone}}, Statements: []policy.Statement{
			{Usage: policy.TrainAI, Pattern: pathpattern.MustParse("/news/")},
			{Usage: policy.AIUse, Pattern: pathpattern.All},
			{Usage: policy.Search, Pattern: pathpattern.All, Allow: true},
		}})
		f := registerFile{asks: asks}
		for body, publish := range map[*string]policy.Publish{&f.without: {}, &f.with: allRegisters} {
			spec.Publish = publish
			p := policy.Compile(&spec)
			file, _ := robotsserve.Render(p, "www.example.com", robotsserve.Options{})
			*body = string(file.Body)
		}
		for _, field := range []string{"Content-Usage:", "Content-Signal:", "License:", "User-agent: No-Training-Token", "ACAP-"} {
			if !strings.Contains(f.with, field) || strings.Contains(f.without, field) {
				t.Fatalf("%s is missing with registers, or is there without them:\n%s", field, f.with)
			}
		}
		files = append(files, f)
	}
	names, err := filepath.Glob("../examples/policies/*.yaml")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		file, ds := policyfile.Load(name, data)
		if file == nil {
			t.Fatal(ds.Text())
		}
		var asks [][2]string
		for _, token := range []string{"Googlebot", "Bingbot", "GPTBot", "CCBot", "ClaudeBot", "AhrefsBot", "Applebot", "UnknownBot"} {
			for _, path := range []string{"/", "/news/a.html", "/archive/1999/x", "/search?q=a", "/members/", "/cart/add", "/images/a.png", "/drafts/b"} {
				asks = append(asks, [2]string{token, path})
			}
		}
		add(*file.Spec, asks)
	}
	r := rand.New(rand.NewPCG(23, 0))
	for range 60 {
		spec := policytest.Random(r, policytest.Options{})
		var asks [][2]string
		for _, c := range spec.Crawlers {
			for range 4 {
				if path := policytest.Path(r); !c.RobotsOnly && !strings.HasPrefix(path, "//") {
					asks = append(asks, [2]string{c.Token, path})
				}
			}
		}
		add(*spec, asks)
	}
	return files
}

// The lines of rights documents and signals in robots.txt do not change any parser's decisions about crawlers.
func TestRegistersChangeNoVerdict(t *testing.T) {
	testkit.Slow(t)
	files := registerFiles(t)
	compare := func(t *testing.T, understands func(body string) bool, ask func(body string, asks [][2]string) ([]bool, error)) {
		asked, disallowed, left := 0, 0, 0
		for _, f := range files {
			if !understands(f.with) {
				left++
				continue
			}
			without, err := ask(f.without, f.asks)
			if err != nil {
				t.Fatal(err)
			}
			with, err := ask(f.with, f.asks)
			if err != nil {
				t.Fatal(err)
			}
			for i, of := range f.asks {
				asked++
				if !without[i] {
					disallowed++
				}
				if without[i] != with[i] {
					t.Fatalf("%s may fetch %s: %t without registers, %t with them\n%s\n%s", of[0], of[1], without[i], with[i], f.without, f.with)
				}
			}
		}
		t.Logf("%d questions about %d files, %d disallowed; %d files left out, which it rejects", asked, len(files)-left, disallowed, left)
		if left < len(files) && (disallowed == 0 || disallowed == asked) {
			t.Error("all answers are the same")
		}
	}
	t.Run("temoto", func(t *testing.T) {
		compare(t, func(string) bool { return true }, func(body string, asks [][2]string) (answers []bool, err error) {
			read, err := robotstxt.FromString(body)
			if err != nil {
				return nil, err
			}
			for _, ask := range asks {
				answers = append(answers, read.TestAgent(ask[1], ask[0]))
			}
			return answers, nil
		})
	})
	t.Run("Google's rules", func(t *testing.T) {
		compare(t, func(string) bool { return true }, func(body string, asks [][2]string) (answers []bool, err error) {
			read := crawlertest.ReadGoogle(body)
			for _, ask := range asks {
				answers = append(answers, read.Allowed(ask[0], ask[1]))
			}
			return answers, nil
		})
	})
	for _, parser := range crawlertest.Parsers {
		if parser.TimedOnly {
			continue
		}
		t.Run(parser.Name, func(t *testing.T) {
			process, err := parser.Start()
			if err != nil {
				t.Fatal(err)
			}
			if process == nil {
				t.Skipf("NOT TESTED: %s is not installed: none of %q runs %q", parser.Name, parser.Programs, parser.Probe)
			}
			t.Cleanup(func() { _ = process.Close() })
			compare(t, func(body string) bool { return parser.Rejects == nil || !parser.Rejects.MatchString(body) }, process.Ask)
		})
	}
}
