// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"unique"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types/ref"
	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
)

func init() {
	caddy.RegisterModule(new(MatchCrawler))
}

// MatchCrawler matches requests of crawlers, as their User-Agent announces them and
// the built-in catalogue knows them.
//
// It is for use with any other directive; what a policy file says does not matter
// to it.
type MatchCrawler struct {
	// Whom to match: product tokens, `category:KIND` (the crawlers whose main
	// purpose it is), `operator:NAME`, `purpose:NAME`, or `any` for every crawler
	// that the catalogue knows. A crawler that is one of them matches.
	Crawlers []string `json:"crawlers,omitempty"`

	// What is asked of the client beside its name: `claimed` is content with the
	// name; `verified` asks that it is that crawler; `not-impostor` that it is not
	// proved to be another; `impostor` that it is. Default: `claimed`.
	Identity string `json:"identity,omitempty"`

	// How crawlers are told from impostors, as the handler's `verify` says it.
	// Default: `embedded`.
	Verify []string `json:"verify,omitempty"`

	// As the handler's `verify_from`. Default: none.
	VerifyFrom []string `json:"verify_from,omitempty"`

	catalogue  *crawlers.Catalogue
	recognizer *crawlers.Recognizer
	wanted     []bool // by index in the catalogue
	lists      []string
	key        unique.Handle[string]
	ids        *identities
}

var identityWords = []string{"claimed", "verified", "not-impostor", "impostor"}

// CaddyModule returns the Caddy module information.
func (*MatchCrawler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.matchers.crawler",
		New: func() caddy.Module { return new(MatchCrawler) },
	}
}

// Provision finds out which crawlers are meant.
func (m *MatchCrawler) Provision(ctx caddy.Context) error {
	if m.Identity == "" {
		m.Identity = "claimed"
	}
	if !isOneOf(m.Identity, identityWords) {
		return fmt.Errorf("%q is no identity: it is one of %q", m.Identity, identityWords)
	}
	if len(m.Crawlers) == 0 {
		return errors.New(`which crawlers? Name some, as in "category:ai-training", or "any"`)
	}
	v, err := parseVerification(m.Verify, m.VerifyFrom)
	if err != nil {
		return err
	}
	if !v.embedded && m.Identity != "claimed" {
		return fmt.Errorf("nobody is ever %s with verify off", m.Identity)
	}
	if strings.HasSuffix(m.Identity, "impostor") && !v.accuses() {
		ctx.Logger().Warn("a matcher asks for " + m.Identity + ", but " + noImpostors)
	}
	if m.catalogue, err = m.known(ctx.Logger()); err != nil {
		return err
	}
	if err := m.choose(); err != nil {
		return err
	}
	m.recognizer = crawlers.NewRecognizer(m.catalogue.Patterns())
	m.lists = m.catalogue.AddressLists()
	m.key = listsKey(m.lists)
	if m.Identity != "claimed" {
		m.ids = &identities{verification: v}
		m.ids.of(m.lists, m.key)
	}
	return nil
}

// known is the catalogue, with the tokens that only the matcher names.
func (m *MatchCrawler) known(logger *zap.Logger) (*crawlers.Catalogue, error) {
	c, err := crawlers.Default()
	if err != nil {
		return nil, err
	}
	var rows []crawlers.Row
	for _, text := range m.Crawlers {
		if a := policy.ParseAudience(text); a.Kind == policy.ForToken && text != "any" {
			if _, ok := c.Lookup(a.Name); !ok {
				if meant := notAToken(a.Name); meant != "" {
					return nil, fmt.Errorf("no crawler is called %q; did you mean %q?", a.Name, meant)
				}
				if near := policyfile.Nearest(a.Name, tokensIn(c)); near != "" {
					logger.Warn(fmt.Sprintf("a matcher names %q, which the catalogue does not know; did you mean %q?", a.Name, near))
				}
				rows = append(rows, crawlers.Row{Token: a.Name})
			}
		}
	}
	return c.Merge(rows...)
}

// notAToken is what was probably meant by a word that would be taken for the name of a
// crawler, or "": an identity that is misspelt would not be asked for, and a kind alone
// is nobody.
func notAToken(word string) string {
	if kind := strings.ToLower(word); crawlers.Kind(kind).Valid() {
		return "category:" + kind
	}
	return policyfile.Nearest(word, identityWords)
}

func tokensIn(c *crawlers.Catalogue) []string {
	tokens := make([]string, c.Len())
	for i := range tokens {
		tokens[i] = c.At(i).Token
	}
	return tokens
}

// choose marks the crawlers that are meant. An audience that is nobody is a mistake.
func (m *MatchCrawler) choose() error {
	m.wanted = make([]bool, m.catalogue.Len())
	for _, text := range m.Crawlers {
		a, found := policy.ParseAudience(text), false
		for i := range m.wanted {
			c := m.catalogue.At(i)
			if !c.RobotsOnly && (text == "any" || means(a, c)) {
				m.wanted[i], found = true, true
			}
		}
		if !found {
			return fmt.Errorf("%q is no crawler that sends requests, and no kind, operator or purpose of one", text)
		}
	}
	return nil
}

func means(a policy.Audience, c *crawlers.Crawler) bool {
	switch a.Kind {
	case policy.ForEveryone:
		return true
	case policy.ForToken:
		return strings.EqualFold(a.Name, c.Token)
	case policy.ForCategory:
		return strings.EqualFold(a.Name, string(c.Kind))
	case policy.ForOperator:
		return strings.EqualFold(a.Name, c.Operator)
	}
	for _, p := range c.Purposes {
		if strings.EqualFold(a.Name, p) {
			return true
		}
	}
	return false
}

// Cleanup ends verification.
func (m *MatchCrawler) Cleanup() error {
	m.ids.release()
	return nil
}

// MatchWithError reports whether a request is by one of the crawlers.
func (m *MatchCrawler) MatchWithError(r *http.Request) (bool, error) { return m.Match(r), nil }

// Match reports whether a request is by one of the crawlers.
func (m *MatchCrawler) Match(r *http.Request) bool {
	i, ok := m.recognizer.RecognizeAll(r.Header["User-Agent"])
	if !ok || !m.wanted[i] {
		return false
	}
	if m.Identity == "claimed" {
		return true
	}
	identity := policy.Unknown
	if c := m.ids.of(m.lists, m.key); c != nil {
		identity = c.identify(r, m.catalogue.At(i).Verification)
	}
	switch m.Identity {
	case "verified":
		return identity == policy.Verified
	case "impostor":
		return identity == policy.Impostor
	}
	return identity != policy.Impostor
}

// CELLibrary makes the matcher a function of expressions:
//
//	expression crawler('category:ai-training', 'verified')
func (*MatchCrawler) CELLibrary(ctx caddy.Context) (cel.Library, error) {
	return caddyhttp.CELMatcherImpl("crawler", "crawler_request_list", []*cel.Type{cel.ListType(cel.StringType)},
		func(data ref.Val) (caddyhttp.RequestMatcherWithError, error) {
			words, err := data.ConvertToNative(reflect.TypeFor[[]string]())
			if err != nil {
				return nil, err
			}
			m := new(MatchCrawler)
			if err := m.words(words.([]string)); err != nil {
				return nil, err
			}
			return m, m.Provision(ctx)
		})
}

// words takes the words of one line: crawlers, and at most one identity.
func (m *MatchCrawler) words(words []string) error {
	for _, w := range words {
		if !isOneOf(w, identityWords) {
			m.Crawlers = append(m.Crawlers, w)
			continue
		}
		if m.Identity != "" {
			return fmt.Errorf("both %s and %s: a matcher asks for one identity", m.Identity, w)
		}
		m.Identity = w
	}
	return nil
}

func isOneOf(word string, words []string) bool {
	for _, w := range words {
		if w == word {
			return true
		}
	}
	return false
}

// UnmarshalCaddyfile reads the matcher from Caddyfile tokens. Syntax:
//
//	crawler <crawlers...> [verified|not-impostor|impostor] {
//	    verify      [lists] [dns] [signatures]|embedded
//	    verify_from <ranges...>
//	}
//
// A crawler is a product token, category:KIND, operator:NAME, purpose:NAME, or any.
func (m *MatchCrawler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	for d.Next() {
		args := d.RemainingArgs()
		if len(args) == 0 {
			return d.Err("crawler needs to know which: product tokens, category:KIND, operator:NAME, purpose:NAME or any")
		}
		if err := m.words(args); err != nil {
			return d.WrapErr(err)
		}
		for d.NextBlock(0) {
			name, args := d.Val(), d.RemainingArgs()
			switch name {
			case "verify":
				m.Verify = args
			case "verify_from":
				m.VerifyFrom = args
			default:
				return d.Errf("unrecognized subdirective '%s'; crawler knows verify and verify_from", name)
			}
			if len(args) == 0 {
				return d.ArgErr()
			}
		}
	}
	return nil
}

var (
	_ caddy.Provisioner                 = (*MatchCrawler)(nil)
	_ caddy.CleanerUpper                = (*MatchCrawler)(nil)
	_ caddyhttp.RequestMatcherWithError = (*MatchCrawler)(nil)
	_ caddyhttp.CELLibraryProducer      = (*MatchCrawler)(nil)
	_ caddyfile.Unmarshaler             = (*MatchCrawler)(nil)
)
