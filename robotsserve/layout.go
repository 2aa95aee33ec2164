// SPDX-License-Identifier: Apache-2.0

package robotsserve

import (
	"slices"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

// layout holds data that the files of all hosts of a policy share. It is not safe for concurrent use.
type layout struct {
	p                 *policy.Policy
	records           []writerOf                    // writers of the channels that have records
	crawlers          []*crawler                    // by policy.CrawlerID; an element is nil until it is needed
	places            map[*policy.Rule]uint64       // places of the rules that shape a group
	usages            []policy.Usage                // usages of the statements of these rules
	purposes          []string                      // purposes that rules are for
	followers         map[string][]policy.CrawlerID // the crawlers that follow a token, by this token in lower case
	ignoring          []policy.CrawlerID            // crawlers that ignore "*"
	written           map[string]bool               // tokens that rules name, in lower case
	speaks            robotstxt.Stated
	disallowsTraining bool               // a rule disallows train-ai or other
	controls          []policy.CrawlerID // control tokens for AI training
}

func newLayout(p *policy.Policy) *layout {
	l := &layout{
		p: p, records: recordWriters(p.WithoutFallback()), places: map[*policy.Rule]uint64{}, purposes: purposeAudiences(p.Spec()),
		followers: map[string][]policy.CrawlerID{}, speaks: robotstxt.StatedBy(p), written: map[string]bool{},
	}
	rules := p.Spec().Rules
	for i := range rules {
		for _, a := range rules[i].For {
			if a.Kind == policy.ForToken && !rules[i].Fallback {
				l.written[strings.ToLower(a.Name)] = true
			}
		}
		if !rules[i].InGroups() {
			continue
		}
		l.places[&rules[i]] = uint64(i) + 1
		for _, s := range rules[i].Statements {
			if !s.Allow && (s.Usage == policy.TrainAI || s.Usage == policy.Other) {
				l.disallowsTraining = true
			}
			if s.Usage.InGroups() && !slices.Contains(l.usages, s.Usage) {
				l.usages = append(l.usages, s.Usage)
			}
		}
	}
	for id, info := range p.Crawlers {
		if info.Signer {
			continue
		}
		for _, head := range info.Follows {
			head = strings.ToLower(head)
			l.followers[head] = append(l.followers[head], id)
		}
		if info.IgnoresStar {
			l.ignoring = append(l.ignoring, id)
		}
		if info.ControlsTraining {
			l.controls = append(l.controls, id)
		}
	}
	return l
}

type crawler struct {
	policy.Crawler
	lower string
}

func newCrawler(info policy.Crawler) *crawler {
	return &crawler{info, strings.ToLower(info.Token)}
}

func (l *layout) crawler(id policy.CrawlerID) *crawler {
	if int(id) >= len(l.crawlers) {
		l.crawlers = append(l.crawlers, make([]*crawler, int(id)+1-len(l.crawlers))...)
	}
	if l.crawlers[id] == nil {
		l.crawlers[id] = newCrawler(l.p.CrawlerInfo(id))
	}
	return l.crawlers[id]
}
