// SPDX-License-Identifier: Apache-2.0

package crawlers

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/ascii"
)

// purposeForm matches the purposes that policies can name. The example in draft-illyes-rep-purpose-00 section 2.1
// is "EXAMPLE-PURPOSE-1".
var purposeForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._-]*$`)

// checkCrawler checks a row of the built-in catalog, and returns all errors in this row.
func checkCrawler(c *Crawler) (errs []error) {
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.Operator == "" && slices.Contains(c.Sources, "operator") {
		add("operator is missing")
	}
	if !c.Honors.Valid() {
		add("honors is %q; expected yes, no, partly, user-triggered or unknown", c.Honors)
	}
	if _, err := time.Parse(time.DateOnly, c.AsOf); err != nil {
		add("as-of is %q; expected a date such as 2026-11-21", c.AsOf)
	}
	if c.IsSigner() {
		add("a token cannot begin with %s", SignerPrefix)
	}
	if len(c.Sources) == 0 {
		add("source is missing")
	}
	v := c.Verification
	onlySigns := v.WebBotAuth != "" && len(v.AddressLists)+len(v.ReverseDNS) == 0 // such a crawler may send a browser's User-Agent, so it needs no examples
	if len(c.Examples) == 0 && !c.RobotsOnly && !onlySigns {
		add("examples are missing")
	}
	if len(c.Examples) > 0 && c.RobotsOnly {
		add("a token used only in robots.txt cannot have examples")
	}
	if !c.Category.Valid() && c.Category != CategoryNone {
		add("there is no category %q", c.Category)
	}
	for i, k := range c.Further {
		if !k.Valid() && k != CategoryOnDevice {
			add("there is no category %q", k)
		}
		if k == c.Category || slices.Contains(c.Further[:i], k) {
			add("category %q is listed twice", k)
		}
	}
	feedsAI := slices.ContainsFunc(c.Further, func(k Category) bool { return strings.HasPrefix(string(k), "ai-") })
	switch {
	case c.Category != CategorySearch && c.Results != "":
		add("the key \"results\" is only for crawlers of category search")
	case c.Category == CategorySearch && (feedsAI || c.Results != "") && c.Results != ResultsWeb && c.Results != ResultsAI:
		add("results is %q; expected web or ai, because a search crawler with an AI category needs one of these values", c.Results)
	case c.Results != "" && c.Docs == "":
		add("docs is missing; an entry with the key \"results\" needs the address of a page that describes these search results")
	}
	if c.Docs != "" && !isWebAddress(c.Docs) {
		add("invalid docs %q: must be a web address such as https://www.example.com/bot", c.Docs)
	}
	if c.RobotsOnly && len(c.UserAgents) > 0 {
		add("a token used only in robots.txt cannot have user-agents")
	}
	checkFacts(c, func(field string, err error) { add("%s %w", field, err) })
	return errs
}

// checkFacts checks the fields of a crawler that a policy file can also set. For each error, it calls the function add
// with the field's name in the policy file.
func checkFacts(c *Crawler, add func(field string, err error)) {
	if err := CheckPattern(c.Token); err != nil {
		add("token", err)
	}
	for _, p := range c.UserAgents {
		if err := CheckPattern(p); err != nil {
			add("user-agent", fmt.Errorf("%q %w", p, err))
		}
	}
	for _, f := range c.Follows {
		if ascii.Lower(f) == ascii.Lower(c.Token) {
			add("follows", errors.New("must not name the crawler itself"))
		}
	}
	for _, p := range c.Purposes {
		if !purposeForm.MatchString(p) {
			add("purposes", fmt.Errorf("contains %q; a purpose must begin with a letter, and can only have letters, digits, hyphens, underscores and dots", p))
		}
	}
	for _, u := range c.Verification.AddressLists {
		if err := checkHTTPS(u); err != nil {
			add("address-lists", err)
		}
	}
	for _, name := range c.Verification.ReverseDNS {
		if err := checkHostPattern(name); err != nil {
			add("reverse-dns", fmt.Errorf("%q %w", name, err))
		}
	}
	if c.Verification.WebBotAuth != "" {
		if err := checkDirectory(c.Verification.WebBotAuth); err != nil {
			add("signature-directory", err)
		}
	}
}

// checkHostPattern accepts patterns such as ".example.com" and "proxy-*.example.com". The part after the star must
// contain a dot. Otherwise anyone could register a matching name.
func checkHostPattern(s string) error {
	if strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-.*") != "" {
		return errors.New("may contain only lower-case letters, digits, hyphens, dots and one *")
	}
	if strings.Count(s, "*") > 1 {
		return errors.New("contains more than one *")
	}
	_, suffix, star := strings.Cut(s, "*")
	if !star {
		suffix = s
		if !strings.HasPrefix(s, ".") {
			return errors.New("must begin with a dot, as in .example.com, or contain a *, as in proxy-*.example.com")
		}
	}
	if strings.Count(strings.Trim(suffix, "."), ".") < 1 {
		return errors.New("must be below a registered domain")
	}
	return nil
}

func isWebAddress(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Hostname() != "" && u.User == nil
}

func checkHTTPS(s string) error {
	if !isWebAddress(s) || !strings.HasPrefix(s, "https://") {
		return fmt.Errorf("invalid address %q: must begin with https://", s)
	}
	return nil
}

// checkDirectory returns an error unless s is suitable as the URL of a key directory. The URL must use https, because
// otherwise anyone on the network path could change the keys. The URL may have a query. It must not have a fragment,
// because a request cannot contain a fragment (draft-ietf-webbotauth-httpsig-protocol-01 section 5.2.1).
func checkDirectory(s string) error {
	if strings.Contains(s, "#") {
		return fmt.Errorf("invalid address %q: leave out the part from # on, which is never sent to a server", s)
	}
	return checkHTTPS(s)
}

// checkAll returns the contradictions between the rows of a catalog. Each error begins with the place of the row, which
// comes from places.
func checkAll(list []*Crawler, places map[*Crawler]string) (errs []error) {
	add := func(c *Crawler, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: "+format, append([]any{places[c]}, args...)...))
	}
	tokens := make(map[string]*Crawler, len(list))
	for _, c := range list {
		if other := tokens[ascii.Lower(c.Token)]; other != nil {
			add(c, "%s and %s are the same token; remove one", other.Token, c.Token)
		}
		tokens[ascii.Lower(c.Token)] = c
	}
	owner := make(map[string]*Crawler, len(list))
	for _, c := range list {
		for _, f := range c.Follows {
			if tokens[ascii.Lower(f)] == nil {
				add(c, "%s: the key \"follows\" names %s, which is not in the catalog", c.Token, f)
			}
		}
		for _, p := range c.Patterns() {
			if other := owner[ascii.Lower(p)]; other != nil {
				add(c, "%s and %s are both recognized by %q; give one of them other user-agents", other.Token, c.Token, p)
			}
			owner[ascii.Lower(p)] = c
		}
	}
	return errs
}
