// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// rightsSwitches are the lines of the publish section for registers that are no mere
// switches.
func rightsSwitches(p policy.Publish) (lines []string) {
	switch {
	case p.ContentSignal == policy.Off:
	case p.ContentSignalUse != "":
		lines = append(lines, "content-signal: "+p.ContentSignalUse)
	default:
		lines = append(lines, "content-signal: on")
	}
	if p.RSL == defaultRSLPath {
		lines = append(lines, "rsl: on")
	} else if p.RSL != "" {
		lines = append(lines, "rsl: "+scalar(p.RSL))
	}
	return lines
}

func (w *printer) usageTokens() {
	first := true
	for i, u := range policy.RightsUsages() {
		token := w.spec.Publish.UsageTokens[i]
		if token == "" {
			continue
		}
		if first {
			w.line(1, "usage-tokens:")
			first = false
		}
		w.line(2, u.String()+": "+scalar(token))
	}
}

// rights writes the rights section.
func (w *printer) rights() {
	r := &w.spec.Rights
	first := true
	add := func(key, value string) {
		if value == "" {
			return
		}
		if first {
			w.line(0, "rights:")
			first = false
		}
		w.line(1, key+": "+scalar(value))
	}
	add("copyright", r.Copyright)
	add("contact", r.Contact)
	add("terms", r.Terms)
	add("tdm-policy", r.TDMPolicy)
	if len(r.Offers) == 0 {
		return
	}
	if first {
		w.line(0, "rights:")
	}
	w.line(1, "offers:")
	for _, o := range r.Offers {
		w.line(2, "- usage: "+o.Usage.String())
		for _, f := range [...]struct{ key, value string }{
			{"payment", o.Payment}, {"url", o.URL}, {"amount", o.Amount}, {"currency", o.Currency},
		} {
			if f.value != "" {
				w.line(3, f.key+": "+scalar(f.value))
			}
		}
		if len(o.Users) > 0 {
			w.line(3, "users: ["+strings.Join(o.Users, ", ")+"]")
		}
	}
}
