// SPDX-License-Identifier: Apache-2.0

package robotstxt

import (
	"github.com/robotspolicy/caddy-robots-policy/acap"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// Said holds the values of extensions of RFC 9309 that apply to a crawler and a URL: Content-Usage
// (draft-ietf-aipref-attach) and App-Directives (draft-nottingham-plan-b).
type Said struct {
	ContentUsage string `json:"content_usage,omitempty"`
	Directives   string `json:"app_directives,omitempty"`
}

// Said returns the values of Content-Usage and App-Directives that the crawler's group has for a URL.
func (a *Agent) Said(url string) Said {
	return Said{a.extension("content-usage", url), a.extension("app-directives", url)}
}

// Lines returns the values as lines of robots.txt.
func (s Said) Lines() (all []string) {
	for _, l := range [][2]string{{"content-usage", s.ContentUsage}, {"app-directives", s.Directives}} {
		if l[1] != "" {
			all = append(all, extensionKeys[l[0]]+": "+l[1])
		}
	}
	return all
}

// Decode converts a file to UTF-8.
func Decode(data []byte) []byte { return acap.Decode(data) }

// HasRecords reports whether the imported file has ACAP records. If so, the policy also publishes all of its rules as
// ACAP records.
func (im *Imported) HasRecords() bool { return im.Spec.Publish.ACAP == policy.On }

// HasPreferences reports whether the imported file states preferences about AI or search.
func (im *Imported) HasPreferences() bool {
	return im.Spec.Publish.ContentUsage == policy.On || im.Spec.Publish.ContentSignal == policy.On
}
