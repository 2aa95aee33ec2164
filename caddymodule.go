// SPDX-License-Identifier: Apache-2.0

// Package robotspolicy is a Caddy module that makes robots.txt, the response
// headers, the robots meta elements of pages and the edge say the same thing
// about what crawlers may do.
package robotspolicy

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/metainject"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/robotstag"
)

func init() {
	caddy.RegisterModule(new(Handler))
}

// Handler tells crawlers what one policy file says about a site, in every
// channel that they read: it serves `/robots.txt`, adds the `Robots-Tag`,
// `X-Robots-Tag` and `Content-Usage` headers to every response, rewrites the
// robots meta elements of HTML pages, and refuses crawlers that the policy
// blocks.
//
// The policy file says what is allowed; this configuration says how this server
// goes about it. A file with an error does not load, and the configuration that
// was running goes on.
type Handler struct {
	// The policy file, a YAML document. A relative path is taken from the
	// directory that Caddy runs in. Global placeholders are replaced.
	//
	// `https://…` is a file on a web server, which is asked once a minute; the last
	// good one is kept in Caddy's storage and served when the server is away.
	// `storage:KEY` is a file in Caddy's storage, where `caddy robots-policy publish`
	// puts it for a whole fleet.
	//
	// With `{http.request.host}` in the name there is a file for each host, read
	// when it is first asked for; `{http.request.host.labels.N}` stands for a label
	// of the host, counted from the right.
	Policy string `json:"policy,omitempty"`

	// The policy for hosts without a file, where there is a file for each host.
	// Without it there is none for them: requests pass by as if there were no
	// handler.
	Default string `json:"default,omitempty"`

	// What is done at most about a crawler that the policy disallows: `off`,
	// `log` or `block`. Default: `block`, which leaves it to the policy file.
	Enforce string `json:"enforce,omitempty"`

	// What is done about requests for `/robots.txt`: `replace` answers them from
	// the policy; `merge` adds what the robots.txt of the site behind says, which is
	// fetched through the handlers that follow, where the policy says nothing;
	// `off` passes them on. Default: `replace`.
	RobotsTxt string `json:"robots_txt,omitempty"`

	// How long clients and caches may keep `/robots.txt`, such as `10m`, at most `24h`
	// (RFC 9309 section 2.4); with `0` they ask each time whether it has changed.
	// Default: `1h`.
	RobotsTxtMaxAge string `json:"robots_txt_max_age,omitempty"`

	// Which headers are added to responses: some of `robots-tag`, `x-robots-tag`
	// and `content-usage`, or only `off`. Default: all three. With `tailored`
	// beside them, each crawler is told, in headers and pages, only what the
	// policy says to it, and responses vary by `User-Agent`: for policies that
	// exempt a crawler from what holds for everyone, which cannot be told
	// otherwise.
	Headers []string `json:"headers,omitempty"`

	// What is done about the robots meta elements of pages: `merge` combines the
	// page's own with the policy's to the most restrictive, `replace` puts the
	// policy's in their place, `off` leaves pages alone. Default: `merge`.
	Meta string `json:"meta,omitempty"`

	// How often to look whether the policy has changed, such as `10s`, or `off`: a
	// change is taken up when Caddy loads a configuration (`caddy reload --force`).
	// A policy that is wrong is not taken up; the one before goes on. Default: `2s` for files, `5s` for the
	// storage, `1m` for the web.
	Reload string `json:"reload,omitempty"`

	// How crawlers are told from impostors, by what their operators publish: some
	// of `lists` (address lists, fetched daily), `dns` (reverse DNS, forward
	// confirmed) and `signatures` (Web Bot Auth; the operators' keys are fetched),
	// or `embedded`, which fetches nothing and knows the address lists of the day
	// when this version was made, or `off`. The client's address is what Caddy takes
	// for it: mind `trusted_proxies`. Default: `embedded`.
	Verify []string `json:"verify,omitempty"`

	// Address ranges, in CIDR notation, from which lists and keys are fetched
	// although they are not public: for crawlers of an intranet. Default: none.
	VerifyFrom []string `json:"verify_from,omitempty"`

	logger *zap.Logger
	live   atomic.Pointer[live]
	used   *usedDocument // nil: only hosts with a file have a policy
	hosts  *hostSet      // nil: all hosts have the same policy

	hostReader *hostReader
	robotsAge  robotsAge
	upstreams  *upstreams // nil: robots.txt is not merged
	most       policy.Mode

	errorsCaught bool // by routes for errors around the handler's own
	channels     robotstag.Channels
	tailored     bool
	meta         metainject.Mode
	told         *once
	samples      *sampler
	ids          *identities
	readers      *readers
}

var (
	enforceWords   = []string{"off", "log", "block"}
	robotsTxtWords = []string{"replace", "merge", "off"}
	headerWords    = []string{"robots-tag", "x-robots-tag", "content-usage", "tailored", "off"}
	metaWords      = []string{"merge", "replace", "off"}
)

// CaddyModule returns the Caddy module information.
func (*Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.robots_policy",
		New: func() caddy.Module { return new(Handler) },
	}
}

// Provision applies the defaults and loads the policy.
func (h *Handler) Provision(ctx caddy.Context) error {
	h.logger = ctx.Logger()
	h.told, h.samples = new(once), new(sampler)
	if err := h.settings(); err != nil {
		return err
	}
	if h.RobotsTxt == "merge" {
		h.upstreams = &upstreams{told: h.told, logger: h.logger}
	}
	if err := h.provisionEdge(ctx); err != nil {
		return err
	}
	return h.open(ctx)
}

// Cleanup lets go of the policy and of verification. Requests that are still
// answered keep theirs.
func (h *Handler) Cleanup() error {
	h.ids.release()
	if h.readers != nil {
		// Its only errors are those of Destruct, which has none.
		_, _ = readerPool.Delete(h.Policy)
	}
	return h.close()
}

// settings applies the defaults, which are thus the same for JSON as for the
// Caddyfile, and checks the words.
func (h *Handler) settings() error {
	for _, s := range []struct {
		name  string
		value *string
		words []string
		def   string
	}{
		{"enforce", &h.Enforce, enforceWords, "block"},
		{"robots_txt", &h.RobotsTxt, robotsTxtWords, "replace"},
		{"meta", &h.Meta, metaWords, "merge"},
	} {
		if *s.value == "" {
			*s.value = s.def
		}
		if !slices.Contains(s.words, *s.value) {
			return fmt.Errorf("%q is no value of %s: it takes one of %q", *s.value, s.name, s.words)
		}
	}
	h.most, _ = policy.ParseMode(h.Enforce)
	h.meta = map[string]metainject.Mode{"merge": metainject.Merge, "replace": metainject.Replace, "off": metainject.Off}[h.Meta]
	var err error
	if h.robotsAge, err = parseRobotsAge(h.RobotsTxtMaxAge); err != nil {
		return err
	}
	h.channels, h.tailored = 0, false
	for _, name := range h.Headers {
		switch name {
		case "robots-tag":
			h.channels |= robotstag.RobotsTag
		case "x-robots-tag":
			h.channels |= robotstag.XRobotsTag
		case "content-usage":
			h.channels |= robotstag.ContentUsage
		case "tailored":
			h.tailored = true
		case "off":
			if len(h.Headers) > 1 {
				return errors.New(`headers is "off" and something else`)
			}
		default:
			return fmt.Errorf("%q is no value of headers: it takes some of %q", name, headerWords)
		}
	}
	if h.channels == 0 && !slices.Contains(h.Headers, "off") {
		h.channels = robotstag.AllChannels
	}
	return nil
}

// readFile reads a file, but no more of it than tells that it is too large.
func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, policyfile.MaxSize+1))
}

var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddy.CleanerUpper          = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
	_ caddyfile.Unmarshaler       = (*Handler)(nil)
)
