// SPDX-License-Identifier: Apache-2.0

package site

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/robotspolicy/caddy-robots-policy/channels"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/rights"
)

// Register describes the statements of a rights document or signal about a URL, and its readers.
type Register struct {
	Name     string `json:"name"`
	Says     string `json:"says"`
	Document string `json:"document"`
	Readers  string `json:"readers"`
}

// explainRights returns the statements of each channel about rights for a query's URL.
func (s *Site) explainRights(q policy.Query) (all []Register) {
	page := s.Page(q.Host, q.Path, q.Now)
	everyone := sync.OnceValue(func() rights.Verdicts {
		return rights.ForEveryone(s.Policy, policy.Query{Host: q.Host, Path: q.Path, Now: q.Now}).Verdicts()
	})
	for _, ch := range channels.Table {
		x := channels.Question{Spec: s.File.Spec, Everyone: everyone, Document: s.Document(ch, q.Host)}
		for d := range page.published {
			if d.Channel == ch {
				x.Declared = d.Declared
			}
		}
		if x.Declared == nil && !ch.On(&s.File.Spec.Publish) {
			continue
		}
		for _, says := range s.says(ch, x, page, q) {
			all = append(all, Register{ch.Name, cmp.Or(says, "nothing"), ch.Document, ch.Readers})
		}
	}
	return all
}

// says lists the statements of a channel about a page. It returns nil if the channel does not state anything about
// rights.
func (s *Site) says(ch *channels.Channel, x channels.Question, page *Page, q policy.Query) []string {
	switch {
	case ch.Says != nil:
		return ch.Says(x)
	case ch.Vocabulary != nil && page.Values != nil:
		return []string{strings.Join(page.Values.Preferences[slices.Index(rights.Vocabularies[:], ch.Vocabulary)], ", ")}
	case !ch.Words.IsEmpty():
		q.Crawler = 0
		return []string{s.Shown(q).Without(func(rule string) bool { return !ch.Words.Has(rule) }).String()}
	case x.Declared != nil:
		return []string{x.Declared.String()}
	case ch.Vocabulary != nil, ch.Page != nil:
		return []string{""}
	}
	return nil
}

func writeRights(b *strings.Builder, all []Register) {
	if len(all) == 0 {
		return
	}
	b.WriteString("\nRights documents and signals, the same for all crawlers:\n")
	for _, r := range all {
		fmt.Fprintf(b, "  %-15s %s\n%18sspecified by %s; who reads it: %s\n", r.Name, r.Says, "", r.Document, r.Readers)
	}
}

func statesRights(r policy.Rule) bool {
	return slices.ContainsFunc(r.Statements, func(s policy.Statement) bool { return s.Usage == policy.Other || s.Usage.IsRight() })
}
