// SPDX-License-Identifier: Apache-2.0

package robotstxt_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

// After an import, the policy publishes the same kinds of preference lines as the file. It does not add a group for
// crawlers that the file does not name.
func TestRegistersComeBack(t *testing.T) {
	names := newNames(t)
	for _, c := range []struct{ name, section, file string }{
		{
			"Content-Signal alone", "contentsignals.org",
			"User-agent: *\nDisallow: /a/\nContent-Signal: ai-train=no\n",
		},
		{
			"how far content may be used", "contentsignals.org, use=",
			"User-agent: *\nDisallow: /a/\nContent-Signal: ai-train=no, use=reference\n",
		},
		{
			"nothing but how far content may be used", "contentsignals.org, use=",
			"User-agent: *\nDisallow: /a/\nContent-Signal: use=reference\n",
		},
		{
			"Content-Usage alone", "draft-ietf-aipref-attach-05",
			"User-agent: *\nDisallow: /a/\nContent-Usage: train-ai=n\n",
		},
		{
			"a group that stands for a usage", "draft-kelley-aipref-training-preference-signal-00",
			"User-agent: *\nDisallow: /a/\n\nUser-agent: __usage_ai-training\nAllow: /open/\nDisallow: /\n",
		},
	} {
		t.Run(c.name+", "+c.section, func(t *testing.T) {
			im, err := robotstxt.Import([]byte(c.file), names.Crawlers())
			if err != nil {
				t.Fatal(err)
			}
			file, ds := policyfile.Load("imported.yaml", policyfile.Print(im.Spec))
			if ds.HasErrors() {
				t.Fatal(ds)
			}
			f, _ := robotsserve.Render(file.Policy, "", robotsserve.Options{})
			if string(f.Body) != c.file {
				t.Errorf("published:\n%s\nwant\n%s", f.Body, c.file)
			}
		})
	}
}

// Earlier drafts used other names for the usages of draft-ietf-aipref-vocab-08. Import converts these names.
func TestEarlierLabels(t *testing.T) {
	im, err := robotstxt.Import([]byte("User-agent: *\nDisallow:\nContent-Usage: train-genai=n, ai-output=n, search=y\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	p := compile(t, im.Spec)
	for u, want := range map[policy.Usage]policy.Verdict{policy.TrainAI: policy.Disallowed, policy.AIUse: policy.Disallowed, policy.Search: policy.Allowed} {
		if got := p.Decide(policy.Query{Path: "/", Usage: u}).Verdict; got != want {
			t.Errorf("%v: %v", u, got)
		}
	}
	if len(im.Notes) != 2 || !strings.Contains(im.Notes[0].Message, "read as train-ai") {
		t.Errorf("%+v", im.Notes)
	}
}

// A group for a usage is not for a crawler. It becomes a rule about the usage.
func TestUsageGroupsAreNoCrawlers(t *testing.T) {
	im, err := robotstxt.Import([]byte("User-agent: __USAGE_ai-training\nDisallow: /x/\n\nUser-agent: __usage_summaries\nDisallow: /\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	p := compile(t, im.Spec)
	for _, c := range []struct {
		usage policy.Usage
		path  string
		want  policy.Verdict
	}{{policy.TrainAI, "/x/", policy.Disallowed}, {policy.TrainAI, "/y/", policy.Unstated}, {policy.Crawl, "/x/", policy.Unstated}} {
		if got := p.Decide(policy.Query{Path: c.path, Usage: c.usage}).Verdict; got != c.want {
			t.Errorf("%v of %s: %v", c.usage, c.path, got)
		}
	}
	if len(im.Spec.Crawlers) > 0 || !slices.ContainsFunc(im.Notes, func(n robotstxt.Note) bool { return strings.Contains(n.Message, "__usage_summaries") }) {
		t.Errorf("%+v %+v", im.Spec.Crawlers, im.Notes)
	}
}

// A preference above the first group becomes a rule for everyone. Invalid purposes are left out.
func TestImportAboveGroups(t *testing.T) {
	names := newNames(t)
	for _, c := range []struct {
		name, file string
		note       string
		kind       policy.AudienceKind
		usage      policy.Usage
	}{
		{
			"Content-Signal", "Content-Signal: ai-train=no\n\nUser-agent: *\nAllow: /\n\nUser-agent: GPTBot\nAllow: /\n",
			"add it to each group that does not state this preference", policy.ForEveryoneElse, policy.TrainAI,
		},
		{
			"Content-Usage alone", "Content-Usage: /a/ train-ai=n\n",
			"add it to each group that does not state this preference", policy.ForEveryoneElse, policy.TrainAI,
		},
		{
			"an invalid purpose", "User-agent: *\nDisallow: /x/\n\nUser-Agent-Purpose: 1b\nDisallow: /\n",
			`"1b" is not a valid name of a purpose`, policy.ForEveryoneElse, policy.Crawl,
		},
		{
			"a purpose with a dot", "User-Agent-Purpose: a.b\nDisallow: /\n",
			"", policy.ForPurpose, policy.Crawl,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			im, err := robotstxt.Import([]byte(c.file), names.Crawlers())
			if err != nil {
				t.Fatal(err)
			}
			if _, ds := policyfile.Load("imported.yaml", policyfile.Print(im.Spec)); ds.HasErrors() {
				t.Fatal(ds)
			}
			r := im.Spec.Rules[0]
			if r.For[0].Kind != c.kind || !slices.ContainsFunc(r.Statements, func(s policy.Statement) bool { return s.Usage == c.usage && !s.Allow }) {
				t.Errorf("the first rule is %+v", r)
			}
			noted := slices.ContainsFunc(im.Notes, func(n robotstxt.Note) bool { return strings.Contains(n.Message, c.note) })
			if !noted && c.note != "" || c.note == "" && len(im.Notes) > 0 {
				t.Errorf("notes %+v, want %q", im.Notes, c.note)
			}
		})
	}
}
