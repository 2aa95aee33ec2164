// SPDX-License-Identifier: Apache-2.0

package channels

import (
	"fmt"
	"slices"

	"github.com/robotspolicy/caddy-robots-policy/acap"
	"github.com/robotspolicy/caddy-robots-policy/appdirectives"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/rights"
	"github.com/robotspolicy/caddy-robots-policy/rights/rsl"
	"github.com/robotspolicy/caddy-robots-policy/rights/tdmrep"
	"github.com/robotspolicy/caddy-robots-policy/robotsrule"
)

// Table lists all channels. The most widely read channel is first.
var Table = []*Channel{&directives, &controlTokens, &usageTokens, &noAI, &contentSignal, &contentUsage, &tdmRep, &rslDocument, &records}

var directives = Channel{
	Name: appdirectives.Field, Document: "draft-nottingham-plan-b", Readers: "applications that document their directives",
	On: func(*policy.Publish) bool { return true },
	Group: &Group{
		Field: appdirectives.Field, ByPath: true,
		Lines: func(c *rights.Client) ([]policy.Line, []policy.Problem) {
			return appdirectives.Lines(c.Policy, c.Class, c.Purpose)
		},
		Named: Hint{
			"app-directives-named",
			"these app-directives are only in robots.txt groups for named crawlers, where few applications look for them; write them in a rule for everyone",
		},
		Reasons: func(p *policy.Policy, q policy.Query, add func(*policy.Rule, policy.Pos, string)) {
			for d, r := range appdirectives.For(p, q) {
				add(r, d.Pos, "has the application directives "+d.Text+" for "+d.Pattern.String())
			}
		},
		Values: &Values{Names: (*policy.Policy).Apps, Patterns: appdirectives.Patterns, Value: appdirectives.Value},
	},
}

var controlTokens = Channel{
	Name: "control token", Key: "controls", Document: "the operator's pages", Readers: "the operator that defined the token, to decide about AI training",
	On:      func(p *policy.Publish) bool { return p.Controls != policy.Off },
	Carries: func(p *policy.Publish, u policy.Usage) bool { return p.Controls != policy.Off && u == policy.TrainAI },
}

var usageTokens = Channel{
	Name: "usage token", Key: "usage-tokens", ForEveryone: true,
	Document: "draft-kelley-aipref-training-preference-signal-00, October 2026", Readers: "no crawler yet; Google intends to read it",
	On: func(p *policy.Publish) bool { return p.UsageTokens != policy.UsageTokens{} },
	Carries: func(p *policy.Publish, u policy.Usage) bool {
		return p.UsageTokens[slices.Index(rightsUsages, u)] != ""
	},
	Says: func(x Question) (says []string) {
		for i, u := range rightsUsages {
			if token := x.Spec.Publish.UsageTokens[i]; token != "" {
				verb := "may be used"
				if x.Everyone()[i] == policy.Disallowed {
					verb = "may not be used"
				}
				says = append(says, fmt.Sprintf("User-agent: %s, it %s for %s", token, verb, u))
			}
		}
		return says
	},
}

var noAI = Channel{
	Name: "noai", Key: "noai", Document: "DeviantArt, November 2022", Readers: "img2dataset, by default",
	On:      func(p *policy.Publish) bool { return p.NoAI != policy.Off },
	Carries: func(p *policy.Publish, u policy.Usage) bool { return p.NoAI != policy.Off && u == policy.TrainAI },
	Words:   robotsrule.Of("noai", "noimageai"),
}

var contentSignal = vocabulary(&rights.ContentSignal, Channel{
	Document: "contentsignals.org, September 2025; use= was added in August 2026", Readers: "Cloudflare's crawling service /crawl, since August 2026",
})

var contentUsage = vocabulary(&rights.ContentUsage, Channel{
	Document: "draft-ietf-aipref-vocab-08 and -attach-05, August and September 2026", Readers: "no crawler documents that it reads Content-Usage",
})

// vocabulary returns the channel of a vocabulary. It copies c and sets the fields that depend on the vocabulary.
func vocabulary(f *rights.Vocabulary, c Channel) Channel {
	c.Name, c.Key, c.On, c.Vocabulary = f.Field, f.Key, f.On, f
	c.Carries = func(p *policy.Publish, _ policy.Usage) bool { return f.On(p) }
	c.Group = &Group{Field: f.Field, ByPath: f.Crossing != "", Lines: f.Lines, StrictLine: f.StrictLine}
	return c
}

var tdmRep = Channel{
	Name: "TDMRep", Key: "tdmrep", ForEveryone: true,
	Document: "W3C Community Group final report, May 2024", Readers: "few crawlers; according to reports, TDMRep is on a shortlist of the EU's AI Office",
	On:      func(p *policy.Publish) bool { return p.TDMRep != policy.Off },
	Carries: func(p *policy.Publish, u policy.Usage) bool { return p.TDMRep != policy.Off && u != policy.Search },
	Switch:  func(p *policy.Publish) { p.TDMRep = policy.On },
	Where:   tdmrep.Path + ", headers and pages",
	Page: &Page{
		Fields: []string{tdmrep.ReservationField, tdmrep.PolicyField},
		Declare: func(x Question) rights.Declared {
			if x.Spec.Publish.TDMRep == policy.Off {
				return nil
			}
			if d := tdmrep.Of(x.Everyone(), x.Spec.Rights.TDMPolicy); d.Reservation != tdmrep.Unset {
				return d
			}
			return nil
		},
	},
	File: &File{
		Name: "tdmrep.json",
		Path: func(p *policy.Publish) string {
			if p.TDMRep == policy.Off {
				return ""
			}
			return tdmrep.Path
		},
		New: func(v *rights.View, spec *policy.Spec) *rights.Document {
			file, _ := tdmrep.New(v, spec.Rights.TDMPolicy)
			if len(file.Rules) == 0 {
				return nil
			}
			return file.Document()
		},
		Site: &Site{
			Path: tdmrep.Path, Type: tdmrep.MediaType, IsLikely: tdmrep.IsLikely,
			Parse: func(data []byte) (rights.SiteDocument, []string, error) {
				f, notes, err := tdmrep.Parse(data)
				if err != nil { // ignore an invalid document, because its readers cannot use it
					return &tdmrep.File{}, nil, err
				}
				return f, notes, nil
			},
		},
	},
}

var rslDocument = Channel{
	Name: "RSL", Key: "rsl", ForEveryone: true, Document: "RSL 1.0, December 2025", Readers: "no large AI vendor, as far as is known",
	On:      func(p *policy.Publish) bool { return p.RSL != "" },
	Carries: func(p *policy.Publish, _ policy.Usage) bool { return p.RSL != "" },
	Switch:  func(p *policy.Publish) { p.RSL = rsl.DefaultPath },
	Where:   rsl.DefaultPath + ", robots.txt and headers",
	Page: &Page{
		Fields: []string{"Link"}, License: true,
		Declare: func(x Question) rights.Declared {
			switch publish := &x.Spec.Publish; {
			case publish.License != "":
				return rsl.Link(publish.License)
			case publish.RSL != "" && x.Document != nil:
				return rsl.Link(publish.RSL)
			}
			return nil
		},
	},
	File: &File{
		Name: "license.xml",
		Path: func(p *policy.Publish) string { return p.RSL }, Field: "License",
		New: func(v *rights.View, spec *policy.Spec) *rights.Document {
			doc, _ := rsl.New(v, &spec.Rights)
			return doc
		},
	},
	Says: func(x Question) []string {
		switch {
		case x.Spec.Publish.RSL != "" && x.Document != nil:
			return []string{rsl.Describe(x.Everyone(), x.Spec.Rights.Offers) + " in " + x.Spec.Publish.RSL}
		case x.Declared != nil:
			return []string{x.Declared.String()}
		}
		return []string{""}
	},
}

var records = Channel{
	Name: "ACAP", Key: "acap", Document: "ACAP 1.0", Readers: "no search engine",
	On: func(p *policy.Publish) bool { return p.ACAP != policy.Off },
	Records: &Records{
		First: acap.VersionComment, EOL: "\r\n", // required by ACAP's grammar, and allowed by RFC 9309
		New:      func(p *policy.Policy) RecordWriter { return acap.NewWriter(p) },
		All:      func(p *policy.Publish) bool { return p.ACAP == policy.Full },
		Explain:  acap.Explain,
		SwitchOn: "acap: auto",
	},
}

var rightsUsages = func() []policy.Usage { u := policy.RightsUsages(); return u[:] }()
