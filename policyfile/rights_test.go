// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

const rightsFile = `version: 1
rules:
  - for: everyone
    disallow: {train-ai: /}
    allow: {search: /}
publish:
  content-usage: on
  content-signal: reference
  controls: off
  usage-tokens: {train-ai: No-Training, ai-use: No-Answers}
  tdmrep: on
  rsl: /licenses/site.xml
rights:
  copyright: Example Media Ltd
  contact: mailto:rights@example.com
  terms: https://www.example.com/terms
  tdm-policy: https://www.example.com/tdm.json
  offers:
    - {usage: train-ai, payment: subscription, url: https://www.example.com/license}
    - usage: ai-use
      payment: use
      url: https://www.example.com/license
      amount: 0.015
      currency: EUR
      users: [commercial, personal]
`

func TestRights(t *testing.T) {
	t.Parallel()
	f, ds := Load("policy.yaml", []byte(rightsFile))
	if f == nil || ds.HasErrors() {
		t.Fatal(ds.Text())
	}
	want := policy.Publish{
		ContentUsage: policy.On, ContentSignal: policy.On, ContentSignalUse: "reference",
		UsageTokens: policy.UsageTokens{"No-Training", "No-Answers", ""}, TDMRep: policy.On, RSL: "/licenses/site.xml",
	}
	if !reflect.DeepEqual(f.Spec.Publish, want) {
		t.Errorf("publish: %+v", f.Spec.Publish)
	}
	r := f.Spec.Rights
	got := fmt.Sprint(r.Copyright, r.Contact, r.Terms, r.TDMPolicy, r.Offers[0].Payment, r.Offers[1].Usage, r.Offers[1].Amount, r.Offers[1].Currency, r.Offers[1].Users)
	if want := "Example Media Ltdmailto:rights@example.comhttps://www.example.com/termshttps://www.example.com/tdm.jsonsubscriptionai-use0.015EUR[commercial personal]"; got != want {
		t.Errorf("rights:\n%s\nwant\n%s", got, want)
	}
	again, ds := Load("again.yaml", f.Print())
	if again == nil || meaning(t, again.Spec) != meaning(t, f.Spec) {
		t.Errorf("printed, it means something else:\n%s\n%s", f.Print(), ds.Text())
	}
}

func TestRightsDefaults(t *testing.T) {
	t.Parallel()
	f, ds := Load("policy.yaml", []byte("version: 1\nrules:\n  - for: everyone\n    disallow: {crawl: /x/}\npublish: {rsl: on}\n"))
	if f == nil {
		t.Fatal(ds.Text())
	}
	if p := f.Spec.Publish; p.RSL != defaultRSLPath || p.Controls != policy.Auto || p.TDMRep != policy.Off || p.ContentSignal != policy.Off {
		t.Errorf("%+v", p)
	}
}

func TestInvalidRights(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, code, says string }{
		{"rsl without slash", "publish: {rsl: license.xml}", "bad-value", "on, off or the path"},
		{"rsl as a pattern", "publish: {rsl: '/l*'}", "bad-value", "one document"},
		{"rsl over robots.txt", "publish: {rsl: /robots.txt}", "bad-value", "one document"},
		{"rsl at the root", "publish: {rsl: /}", "bad-value", "one document"},
		{"two licenses", "publish: {rsl: on, license: https://example.com/l.xml}", "contradiction", "Programs that read licenses use only one of them"},
		{"content-signal word", "publish: {content-signal: everything}", "bad-value", "content-signal"},
		{"token of a crawler", "publish: {usage-tokens: {train-ai: GPTBot}}", "bad-value", "belongs to a crawler"},
		{"token of a rule's crawler", "  - {for: OurBot, disallow: {crawl: /x/}}\npublish: {usage-tokens: {train-ai: ourbot}}", "bad-value", "belongs to a crawler"},
		{"token twice", "publish: {usage-tokens: {train-ai: Tok, ai-use: tok}}", "bad-value", "two usages"},
		{"token with a space", "publish: {usage-tokens: {train-ai: a b}}", "bad-value", "letters"},
		{"token of everyone", "publish: {usage-tokens: {train-ai: '*'}}", "bad-value", "letters"},
		{"usage without token", "publish: {usage-tokens: {crawl: Tok}}", "unknown-key", "crawl"},
		{"free offer", "rights: {offers: {usage: train-ai, payment: free, url: https://example.com/}}", "bad-value", "under allow in a rule"},
		{"amount alone", "rights: {offers: {usage: train-ai, payment: use, url: https://example.com/, amount: 1}}", "bad-value", "needs both"},
		{"currency", "rights: {offers: {usage: train-ai, payment: use, url: https://example.com/, amount: 1, currency: eur}}", "bad-value", "EUR"},
		{"offer without url", "rights: {offers: {usage: train-ai, payment: use}}", "missing-key", "url"},
		{"terms without scheme", "rights: {terms: www.example.com}", "bad-address", "https://www.example.com"},
		{"line break in a policy", "rights: {tdm-policy: \"https://example.com/\\r\\nx\"}", "", ""},
		{"quotes in a policy", "rights: {tdm-policy: 'https://example.com/\">'}", "bad-address", "%XX"},
		{"contact", "rights: {contact: 'mailto:x'}", "bad-address", "e-mail"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f, ds := Load("policy.yaml", []byte("version: 1\nrules:\n  - {for: everyone, disallow: {train-ai: /}}\n"+c.text+"\n"))
			if f != nil && !ds.HasErrors() {
				t.Fatalf("it loads:\n%s", ds.Text())
			}
			if text := ds.Text(); !strings.Contains(text, c.code) || !strings.Contains(text, c.says) {
				t.Errorf("%s", text)
			}
		})
	}
}
