// SPDX-License-Identifier: Apache-2.0

// Package nethttptest runs the sites of a Caddyfile without Caddy: an HTTP server of the package net/http runs the
// handlers. Tests send the same requests to this server and to Caddy, and compare the responses.
package nethttptest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/crawlers/identity"
	"github.com/robotspolicy/caddy-robots-policy/handler"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
	"github.com/robotspolicy/caddy-robots-policy/site"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

// Config contains what a site needs in addition to its body: the values for the words POLICY, DIR and UPSTREAM in the
// body, and the logger and the handler.Server for its handlers.
type Config struct {
	Policy   string // policy file
	Dir      string
	Upstream http.Handler // the handler is called directly, without a proxy
	Logger   *zap.Logger
	Server   handler.Server
}

// Site is a site that runs without Caddy, in an HTTP server of the package net/http.
type Site struct {
	http.Handler
	pool     source.Pool
	policies *source.Store                                         // nil if the site has no policy
	below    func(host string) (below *robotstxt.File, known bool) // see site.Question; nil if the site does not merge files
}

// New returns a site. The body describes it in the syntax of a Caddyfile, with the directives in the order in which
// they run. If the body contains something that only Caddy supports, New returns the reason in onlyCaddy instead of a
// site.
func New(t testing.TB, body string, c Config) (s *Site, onlyCaddy string) {
	t.Helper()
	p := parser{c: c, last: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
	for d := caddyfile.NewTestDispenser(body); d.Next(); {
		p.directive(t, d)
	}
	if p.onlyCaddy != "" {
		return nil, p.onlyCaddy
	}
	s = &Site{Handler: p.last}
	if p.robots > 0 {
		s.open(t, &p)
	}
	for _, layer := range slices.Backward(p.layers) {
		s.Handler = layer(s, s.Handler)
	}
	return s, ""
}

func (s *Site) open(t testing.TB, p *parser) {
	t.Helper()
	policies, err := s.pool.Open(context.Background(), source.Options{Policy: p.c.Policy, Reload: source.ReloadOff})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := policies.Close(); err != nil {
			t.Error(err)
		}
	})
	s.policies = policies
}

// Reload loads the policy again, and reports why it is rejected.
func (s *Site) Reload(ctx context.Context) error {
	for _, d := range s.pool.Documents() {
		if o := d.Reload(ctx); o.Err != nil {
			return o.Err
		}
	}
	return nil
}

// Explain returns the site's explanation of a request.
func (s *Site) Explain(q site.Question) (*site.Explanation, error) {
	if s.policies == nil {
		return nil, errors.New("the site has no policy")
	}
	snapshot, err := s.policies.Get(context.Background(), q.URL.Host)
	if err != nil {
		return nil, err
	}
	q.Below = s.below
	return snapshot.Site.Explain(q), nil
}

// layer wraps the next handler of a site.
type layer func(s *Site, next http.Handler) http.Handler

// parser parses the body of a site.
type parser struct {
	c         Config
	layers    []layer
	last      http.Handler
	root      string
	robots    int // number of robots_policy directives
	onlyCaddy string
}

// onlyCaddy maps directives and options to the reason why a site with them needs Caddy.
var onlyCaddy = map[string]string{
	"encode":               "encode: net/http does not compress",
	"templates":            "templates: net/http has none",
	"intercept":            "intercept: net/http does not replace responses",
	"error":                "error: net/http has no error routes",
	"handle_errors":        "handle_errors: net/http has no error routes",
	"block_with":           "block_with error: net/http has no error routes",
	"redir":                "redir: with a placeholder of Caddy's",
	"rewrite":              "rewrite: net/http has no directives that rewrite",
	"uri":                  "uri: net/http has no directives that rewrite",
	"try_files":            "try_files: net/http has no directives that rewrite",
	"method":               "method: net/http has no directives that rewrite",
	"vars":                 "vars: placeholders are Caddy's",
	"header deferred":      "header: net/http has no operation on the header of a response as it is written",
	"header_down":          "reverse_proxy header_down: there is no proxy",
	"flush_interval":       "reverse_proxy flush_interval: there is no proxy",
	"close":                "respond close: Caddy's own",
	"status":               "file_server status: http.FileServer has none",
	"browse":               "file_server browse: http.FileServer has other listings",
	"precompressed":        "file_server precompressed: http.FileServer has none",
	"etag_file_extensions": "file_server etag_file_extensions: http.FileServer sends no entity tag",
	"no upstream":          "reverse_proxy to a server that is down: there is no proxy",
}

// needsCaddy records that the site needs Caddy. what is a key of onlyCaddy, which contains the reason.
func (p *parser) needsCaddy(t testing.TB, what string) {
	t.Helper()
	why := onlyCaddy[what]
	if why == "" {
		t.Fatalf("nethttptest cannot serve %q, and onlyCaddy does not say why", what)
	}
	if p.onlyCaddy == "" {
		p.onlyCaddy = why
	}
}

// directive parses one directive with its block.
func (p *parser) directive(t testing.TB, d *caddyfile.Dispenser) {
	t.Helper()
	name, args, nesting := d.Val(), d.RemainingArgs(), d.Nesting()
	if name == "route" {
		for d.NextBlock(nesting) {
			p.directive(t, d)
		}
		return
	}
	block := lines(d, nesting)
	switch name {
	case "robots_policy":
		p.robotsPolicy(t, block)
	case "root":
		p.root = p.c.Dir
	case "header":
		p.header(t, args, block)
	case "respond":
		p.refuseBlock(t, block)
		p.last = respond(args)
	case "file_server":
		p.refuseBlock(t, block)
		p.last = http.FileServer(http.Dir(p.root))
	case "reverse_proxy":
		p.reverseProxy(t, args, block)
	default:
		p.needsCaddy(t, name)
	}
}

// lines returns the lines of a block and of the blocks in it.
func lines(d *caddyfile.Dispenser, nesting int) (all [][]string) {
	for d.NextBlock(nesting) {
		all = append(all, append([]string{d.Val()}, d.RemainingArgs()...))
		all = append(all, lines(d, d.Nesting())...)
	}
	return all
}

// refuseBlock reports that each line in a directive's block needs Caddy.
func (p *parser) refuseBlock(t testing.TB, block [][]string) {
	t.Helper()
	for _, line := range block {
		p.needsCaddy(t, line[0])
	}
}

func (p *parser) reverseProxy(t testing.TB, args []string, block [][]string) {
	t.Helper()
	for _, line := range block {
		switch line[0] {
		case "transport", "keepalive": // these options only determine how a proxy connects
		default:
			p.needsCaddy(t, line[0])
		}
	}
	if len(args) != 1 || args[0] != "UPSTREAM" {
		p.needsCaddy(t, "no upstream")
		return
	}
	p.last = p.c.Upstream
}

// header parses the directive "header". It supports the operations that Caddy applies before it calls the next handler.
// It does not support operations with "-" and ">", because Caddy applies them to the response.
func (p *parser) header(t testing.TB, args []string, block [][]string) {
	t.Helper()
	if len(args) > 0 {
		block = append(block, args)
	}
	for _, line := range block {
		if len(line) != 2 || line[0][0] == '-' || line[0][0] == '>' {
			p.needsCaddy(t, "header deferred")
			continue
		}
		set := http.Header.Set
		name := line[0]
		if name[0] == '+' {
			set, name = http.Header.Add, name[1:]
		}
		p.layers = append(p.layers, func(_ *Site, next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				set(w.Header(), name, line[1])
				next.ServeHTTP(w, r)
			})
		})
	}
}

// respond answers like Caddy's "respond". In the tests, the status is the value of the request's field Status.
func respond(args []string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status := http.StatusOK
		if len(args) > 1 {
			status, _ = strconv.Atoi(r.Header.Get("Status"))
		}
		if w.Header().Get("Content-Type") == "" {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		}
		w.WriteHeader(status)
		if r.Method != http.MethodHead {
			_, _ = io.WriteString(w, args[0])
		}
	})
}

// robotsPolicy parses the directive robots_policy.
func (p *parser) robotsPolicy(t testing.TB, block [][]string) {
	t.Helper()
	o := handler.Options{Logger: p.c.Logger, Server: p.c.Server}
	for _, line := range block {
		if line[0] == "block_with" {
			p.needsCaddy(t, "block_with")
			continue
		}
		if err := setOption(t, &o, line[0], line[1:]); err != nil {
			t.Fatalf("robots_policy %q: %v", line, err)
		}
	}
	p.robots++
	if o.Verifier == nil {
		o.Verifier = verifier(t, nil)
	}
	p.layers = append(p.layers, func(s *Site, next http.Handler) http.Handler {
		o.Policies = s.policies
		h := handler.New(o)
		if o.RobotsTxt == handler.RobotsTxtMerge {
			s.below = h.Upstream
		}
		return h.Wrap(next)
	})
}

func verifier(t testing.TB, methods []string) *identity.Verifier {
	t.Helper()
	m, err := identity.ParseMethods(methods, nil)
	if err != nil {
		t.Fatal(fmt.Errorf("verify %q: %w", methods, err))
	}
	v := identity.New(m, nil)
	t.Cleanup(v.Close)
	return v
}
