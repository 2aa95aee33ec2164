// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types/ref"
	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/crawlers/identity"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

func init() {
	caddy.RegisterModule(new(MatchCrawler))
}

// MatchCrawler matches requests by known crawlers. It uses the User-Agent and, if configured, the verified identity
// of the client.
//
// It can be used with any directive, and does not need a policy file.
type MatchCrawler struct {
	// The crawlers to match. Each entry is a product token, `category:NAME` (a main category), `operator:NAME`,
	// `purpose:NAME`, or `signed:HOST` for requests signed with the keys of a host. `any` matches all crawlers of
	// the catalog. `unlisted` matches clients that look automated, but are not in the catalog.
	Crawlers []string `json:"crawlers,omitempty"`

	// The required identity of the client, in addition to its User-Agent. `any` requires nothing. `verified` requires
	// proof that the client is the crawler. `impostor` requires proof that the client is not the crawler.
	// `not-impostor` matches every client that is not proven to be an impostor. Default: `any`.
	Identity string `json:"identity,omitempty"`

	// The methods that verify crawlers, with the values of the handler's `verify`. Default: `embedded`.
	Verify []string `json:"verify,omitempty"`

	// Ranges of addresses with the meaning of the handler's `verify_from`. Default: none.
	VerifyFrom []string `json:"verify_from,omitempty"`

	catalog    *crawlers.Catalog
	recognizer *crawlers.Recognizer
	wanted     []bool // the crawlers to match, by index in the catalog
	unknown    bool   // matches automated clients that are not in the catalog
	identities *crawlers.Identities
	verifier   *identity.Verifier // nil if only the User-Agent matters
}

// unknownClients is the word for automated clients that are not in the catalog.
const unknownClients = activity.CategoryUnlisted

// anyIdentity is the value of identity that matches every client.
const anyIdentity = "any"

var identityValues = []string{anyIdentity, "verified", "not-impostor", "impostor"}

func (*MatchCrawler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.matchers.crawler",
		New: func() caddy.Module { return new(MatchCrawler) },
	}
}

// Provision prepares the matcher. It looks up the configured crawlers in the catalog.
func (m *MatchCrawler) Provision(ctx caddy.Context) error {
	if _, err := ctx.App("robots_policy"); err != nil { // the app installs the catalog of crawlers
		return err
	}
	if m.Identity == "" {
		m.Identity = anyIdentity
	}
	if err := checkValue("identity", m.Identity, identityValues); err != nil {
		return err
	}
	if len(m.Crawlers) == 0 {
		return errors.New(`no crawler is named; name some, such as "category:ai-training", or write "any"`)
	}
	methods, err := identity.ParseMethods(m.Verify, m.VerifyFrom)
	if err != nil {
		return err
	}
	if !methods.Enabled && m.Identity != anyIdentity {
		return fmt.Errorf("identity %s never matches with \"verify off\"", m.Identity)
	}
	if m.unknown = slices.Contains(m.Crawlers, unknownClients); m.unknown && (m.Identity == "verified" || m.Identity == "impostor") {
		return fmt.Errorf("identity %s never matches %s, because clients that are not in the catalog cannot be verified", m.Identity, unknownClients)
	}
	if strings.HasSuffix(m.Identity, "impostor") && !methods.DetectsImpostors() {
		ctx.Logger().Warn("a matcher requires identity " + m.Identity + ", but " + identity.NoImpostors)
	}
	signers := slices.ContainsFunc(m.Crawlers, crawlers.IsSigner)
	if signers && !methods.Signatures {
		return errors.New("signed:HOST never matches without \"verify signatures\"")
	}
	if m.catalog, err = m.withOwnTokens(ctx.Logger()); err != nil {
		return err
	}
	if err := m.markWanted(); err != nil {
		return err
	}
	m.recognizer = crawlers.NewRecognizer(m.catalog.Patterns())
	if m.Identity != anyIdentity || signers {
		m.identities = crawlers.NewIdentities(m.catalog)
		m.verifier = identity.New(methods, caddyLog)
	}
	return nil
}

// withOwnTokens returns the catalog together with the tokens of the matcher that are not in the catalog.
func (m *MatchCrawler) withOwnTokens(logger *zap.Logger) (*crawlers.Catalog, error) {
	c, err := crawlers.Default()
	if err != nil {
		return nil, err
	}
	var rows []crawlers.Row
	for _, text := range m.Crawlers {
		if crawlers.IsSigner(text) {
			if err := crawlers.CheckSigner(text); err != nil {
				return nil, err
			}
			rows = append(rows, c.SignerRow(text))
			continue
		}
		if a := policy.ParseAudience(text); a.Kind == policy.ForToken && text != "any" && text != unknownClients {
			if _, ok := c.Lookup(a.Name); !ok {
				if meant := likelyMeant(a.Name); meant != "" {
					return nil, fmt.Errorf("unknown crawler %q; did you mean %q?", a.Name, meant)
				}
				if near := policyfile.Nearest(a.Name, tokensIn(c)); near != "" {
					logger.Warn(fmt.Sprintf("a matcher names %q, which is not in the catalog; did you mean %q?", a.Name, near))
				}
				rows = append(rows, crawlers.Row{Token: a.Name})
			}
		}
	}
	return c.Merge(rows...)
}

// likelyMeant returns what the author of a configuration probably meant by a word that is not in the catalog, or "".
// The word may be a category without "category:", or a misspelled identity. Provision rejects such a word, because the
// matcher would treat it as the product token of a crawler. Then a category without "category:" would never match, and
// a misspelled identity would not be required.
func likelyMeant(word string) string {
	if kind := strings.ToLower(word); crawlers.Category(kind).Valid() {
		return "category:" + kind
	}
	return policyfile.Nearest(word, identityValues)
}

func tokensIn(c *crawlers.Catalog) []string {
	tokens := make([]string, c.Len())
	for i := range tokens {
		tokens[i] = c.At(i).Token
	}
	return tokens
}

// markWanted marks the crawlers to match. It returns an error for an entry that does not select any crawler.
func (m *MatchCrawler) markWanted() error {
	m.wanted = make([]bool, m.catalog.Len())
	for _, text := range m.Crawlers {
		a, found := policy.ParseAudience(text), text == unknownClients
		for i := range m.wanted {
			c := m.catalog.At(i)
			if !c.RobotsOnly && (text == "any" || includes(a, c)) {
				m.wanted[i], found = true, true
			}
		}
		if !found {
			return fmt.Errorf("invalid crawler %q: must be the name (product token), category, operator or purpose of at least one crawler that sends requests", text)
		}
	}
	return nil
}

func includes(a policy.Audience, c *crawlers.Crawler) bool {
	if a.Kind == policy.ForToken {
		return strings.EqualFold(a.Name, c.Token)
	}
	return a.Kind == policy.ForEveryone || a.Includes(policy.Crawler{Category: string(c.Category), AI: c.IsAI(), Operator: c.Operator, Purposes: c.Purposes})
}

// Cleanup releases the verifier.
func (m *MatchCrawler) Cleanup() error {
	m.verifier.Close()
	return nil
}

// MatchWithError reports whether the request comes from a crawler of the matcher. If the User-Agent names several
// crawlers, the request matches if any of them does.
func (m *MatchCrawler) MatchWithError(r *http.Request) (bool, error) { return m.Match(r), nil }

// Match reports whether the request comes from a crawler of the matcher.
func (m *MatchCrawler) Match(r *http.Request) bool {
	var buf [4]int
	var clientBuf [4]identity.Client[int]
	var target string
	if m.verifier != nil {
		target, _ = site.PathOf(server{}.Original(r))
	}
	named := m.recognizer.RecognizeEach(buf[:0], r.Header["User-Agent"])
	clients, _ := identity.Ask[int](m.verifier, identity.Request{Request: r, Server: server{}, Target: target}, knownTo{m}, named, clientBuf[:0])
	for _, c := range clients {
		if m.wanted[c.Crawler] && m.accepts(c.Identity) {
			return true
		}
	}
	if !m.unknown || len(clients) > 0 {
		return false
	}
	_, automated := crawlers.AutomatedRequest(r.Header)
	return automated
}

// knownTo makes the crawlers of a matcher available for verification. It identifies them by their index in the
// matcher's catalog.
type knownTo struct{ *MatchCrawler }

func (m knownTo) Identities() *crawlers.Identities { return m.identities }

func (m knownTo) CrawlerOf(c *crawlers.Crawler) (int, bool) { return m.catalog.Index(c.Token) }

// Verification returns the facts that can verify a crawler. It returns no facts if the matcher does not need the
// crawler's identity.
func (m knownTo) Verification(crawler int) crawlers.Verification {
	if m.Identity == anyIdentity || !m.wanted[crawler] {
		return crawlers.Verification{}
	}
	return m.catalog.At(crawler).Verification
}

// accepts reports whether the matcher matches an identity.
func (m *MatchCrawler) accepts(who policy.Identity) bool {
	switch m.Identity {
	case "verified":
		return who == policy.Verified
	case "impostor":
		return who == policy.Impostor
	case "not-impostor":
		return who != policy.Impostor
	}
	return true
}

// CELLibrary makes the matcher available as a function in expressions:
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
			if err := m.parseArgs(words.([]string)); err != nil {
				return nil, err
			}
			return m, m.Provision(ctx)
		})
}

// parseArgs parses the arguments of one line: crawlers, and at most one identity.
func (m *MatchCrawler) parseArgs(words []string) error {
	for _, w := range words {
		if w == anyIdentity || !slices.Contains(identityValues, w) { // the argument "any" stands for crawlers
			m.Crawlers = append(m.Crawlers, w)
			continue
		}
		if m.Identity != "" {
			return fmt.Errorf("both %s and %s are given: a matcher takes one identity", m.Identity, w)
		}
		m.Identity = w
	}
	return nil
}

// UnmarshalCaddyfile reads the matcher from Caddyfile tokens. Syntax:
//
//	crawler <crawlers...> [verified|not-impostor|impostor] {
//	    verify      [lists] [dns] [signatures]|embedded
//	    verify_from <ranges...>
//	}
//
// A crawler is a product token, category:NAME, operator:NAME, purpose:NAME, signed:HOST, "any" or "unlisted".
func (m *MatchCrawler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	for d.Next() {
		args := d.RemainingArgs()
		if len(args) == 0 {
			return d.Err("crawler takes names of crawlers (product tokens), category:NAME, operator:NAME, purpose:NAME, signed:HOST, any or unlisted")
		}
		if err := m.parseArgs(args); err != nil {
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
				return d.Errf("unrecognized subdirective '%s': must be verify or verify_from", name)
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
