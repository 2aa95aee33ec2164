// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"regexp"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/pathpattern"
	"github.com/robotspolicy/caddy-robots-policy/policyfile/lint"
)

var (
	ending = regexp.MustCompile(`^\.[A-Za-z0-9]+\$?$`)
	drive  = regexp.MustCompile(`^[A-Za-z]:\\`)
)

// wholeSiteWords are what other formats call the whole site, squashed.
var wholeSiteWords = wordSet(`all everything wholesite thewholesite entiresite everypage allpages`)

// nearPath is the path that a text which does not start with "/" may mean, or "".
func nearPath(text string) string {
	var path string
	switch {
	case drive.MatchString(text) || strings.ContainsAny(text, ",;#"):
		return ""
	case wholeSiteWords[squash(text)]:
		path = "/"
	case lint.IsRegexp(text):
		path = lint.PlainPath(text)
	case ending.MatchString(text) || text[0] == '?' || text[0] == '&':
		path = "/*" + text
	default:
		path = "/" + strings.TrimLeft(strings.ReplaceAll(text, `\`, "/"), "/")
		path = strings.ReplaceAll(path, " ", "%20")
	}
	if _, err := pathpattern.Parse(path); err != nil || lint.IsRegexp(path) {
		return ""
	}
	return path
}
