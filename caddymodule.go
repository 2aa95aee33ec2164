// SPDX-License-Identifier: Apache-2.0

// Package robotspolicy is a Caddy module that makes robots.txt, the response
// headers, the robots meta elements of pages and the edge say the same thing
// about what crawlers may do.
package robotspolicy

import (
	"crypto/sha256"
	"encoding/hex"
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
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
	"github.com/robotspolicy/caddy-robots-policy/robotstag"
	"github.com/robotspolicy/caddy-robots-policy/site"
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
	Policy string `json:"policy,omitempty"`

	// What is done at most about a crawler that the policy disallows: `off`,
	// `log` or `block`. Default: `block`, which leaves it to the policy file.
	Enforce string `json:"enforce,omitempty"`

	// What is done about requests for `/robots.txt`: `replace` answers them from
	// the policy, `off` passes them on. Default: `replace`.
	RobotsTxt string `json:"robots_txt,omitempty"`

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

	logger   *zap.Logger
	live     atomic.Pointer[live]
	most     policy.Mode
	channels robotstag.Channels
	tailored bool
	meta     metainject.Mode
	told     *once
	samples  *sampler
}

// live is the policy that is served. A request takes it once, so that all that
// is said about the request is of one policy.
type live struct {
	site *site.Site
	etag string // the suffix for entity tags of changed pages
}

var (
	enforceWords   = []string{"off", "log", "block"}
	robotsTxtWords = []string{"replace", "off"}
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
	name, err := caddy.NewReplacer().ReplaceOrErr(h.Policy, true, true)
	if err != nil {
		return fmt.Errorf("the policy file's name %q: %w", h.Policy, err)
	}
	return h.load(name)
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

// load reads the policy file and prepares all that requests need.
func (h *Handler) load(name string) error {
	if name == "" {
		return errors.New("no policy file is given")
	}
	data, err := readFile(name)
	if err != nil {
		return fmt.Errorf("reading the policy file: %w", err)
	}
	s, ds := site.Load(name, data, robotsserve.ServeOptions{})
	if ds.HasErrors() {
		return ds
	}
	for _, d := range ds {
		h.logger.Warn("policy file: "+d.Message, zap.String("place", fmt.Sprintf("%s:%d:%d", d.File, d.Pos.Line, d.Pos.Column)), zap.String("code", d.Code))
	}
	sum := sha256.Sum256(data)
	h.live.Store(&live{site: s, etag: "-rp" + hex.EncodeToString(sum[:6])})
	path, err := caddy.FastAbs(name)
	if err != nil {
		path = name
	}
	h.logger.Info("policy loaded", zap.String("file", path), zap.String("sha256", hex.EncodeToString(sum[:])),
		zap.Int("rules", len(s.File.Spec.Rules)), zap.Int("warnings", len(ds)))
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
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
	_ caddyfile.Unmarshaler       = (*Handler)(nil)
)
