// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// requestFields are action requests (ACAP 1.0 section 2.6).
var requestFields = fields[*ruleReader]{
	requestKey(policy.TakeDown, "what to delete all copies and index entries of"),
	requestKey(policy.ReCrawl, "what to fetch again"),
}

// requestKey is a field with the resources of one action. They are not patterns: a
// request is for one resource.
func requestKey(action, about string) field[*ruleReader] {
	resources := textShape("the path of one page or file, without *", `^/`)
	return key(action, about, oneOrMore(resources), func(p *parser, n *yaml.Node, r *ruleReader) {
		p.texts(n, action, func(n *yaml.Node, text string) {
			why := ""
			switch {
			case !strings.HasPrefix(text, "/"):
				why = "must start with /"
			case strings.ContainsAny(text, "*$"):
				why = "must be one page or file, without * and $; list each of them"
			case strings.ContainsAny(text, "?#"):
				why = "cannot have ? or #, which ACAP 1.0 does not allow in a request"
			case strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c == 0x7f }):
				why = "cannot have spaces; write a space as %20"
			}
			if why != "" {
				p.report(posOf(n), "bad-path", "", "invalid path %s: the path of a request %s", quote(text), why)
				return
			}
			r.rule.Requests = append(r.rule.Requests, policy.ActionRequest{Pos: posOf(n), Action: action, Path: pathpattern.NormalizePath(text)})
		})
	}, func(w *printer, r *ruleReader) {
		var paths []string
		for _, q := range r.rule.Requests {
			if q.Action == action {
				paths = append(paths, q.Path)
			}
		}
		w.texts(action, paths)
	})
}
