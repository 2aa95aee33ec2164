// SPDX-License-Identifier: Apache-2.0

// Package robotspolicy is a Caddy module that publishes a policy for crawlers in robots.txt, response headers and
// meta tags, and enforces it.
package robotspolicy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/crawlers/identity"
	"github.com/robotspolicy/caddy-robots-policy/handler"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/auditor"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/policies"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/recorders"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/routecheck"
	_ "github.com/robotspolicy/caddy-robots-policy/internal/cli" // registers the subcommands
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/metainject"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
	"github.com/robotspolicy/caddy-robots-policy/robotstag"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
	"github.com/robotspolicy/caddy-robots-policy/site"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

func init() {
	caddy.RegisterModule(new(Handler))
}

// Handler publishes a policy for crawlers. It serves `/robots.txt` and adds the `Robots-Tag`, `X-Robots-Tag` and
// `Content-Usage` headers to every response. It rewrites the robots meta tags of HTML pages, and blocks crawlers
// that the policy blocks.
//
// The policy file says what crawlers may do. This configuration says how the server applies the policy. If the policy
// has an error, the new configuration is not loaded, and the running one stays.
type Handler struct {
	// The policy, a YAML file. A relative path starts at Caddy's working directory. Global placeholders are
	// replaced.
	//
	// `https://…` is a file on a web server, which is fetched once a minute. Its last good version is saved in
	// Caddy's storage, and used while the web server fails. `storage:KEY` is a key in Caddy's storage, to which
	// `caddy robots-policy publish` writes the policy for a fleet of servers.
	//
	// If the name contains `{http.request.host}`, each host has its own file, which is loaded on the first request.
	// `{http.request.host.labels.N}` stands for one label of the host, counted from the right.
	Policy string `json:"policy,omitempty"`

	// The policy for hosts without a file, if `policy` names a file for each host. Without a default, requests for
	// these hosts pass as if this handler did not exist.
	Default string `json:"default,omitempty"`

	// The strictest action against a crawler that the policy disallows: `off`, `log` or `block`. The policy may
	// choose a milder action. Default: `block`.
	Enforce string `json:"enforce,omitempty"`

	// How a crawler is blocked. `respond` writes the response that the policy describes. `error` raises an error with
	// the status of that response, and the site's error routes answer. Default: `respond`.
	Refuse string `json:"block_with,omitempty"`

	// How requests for `/robots.txt` are answered. `replace` answers with the policy's robots.txt. `merge` also adds
	// lines of the robots.txt that the next handlers serve, such as the site's own file, where the policy has no rule.
	// `off` passes the requests on. Default: `replace`.
	RobotsTxt string `json:"robots_txt,omitempty"`

	// How long clients and caches may use `/robots.txt`, at most `24h` (RFC 9309 section 2.4). With `0` they must
	// revalidate it each time. Default: `1h`.
	RobotsTxtMaxAge *caddy.Duration `json:"robots_txt_max_age,omitempty"`

	// The headers to add: `robots-tag`, `x-robots-tag`, `content-usage` and `content-signal`, or only `off`. Default: all of them.
	Headers []string `json:"headers,omitempty"`

	// Whether each crawler gets only its own rules in headers and pages. If so, every response has `Vary: User-Agent`.
	// Use this setting if the policy exempts a crawler from rules for everyone. Headers that are the same for all
	// crawlers cannot express such an exemption. Default: false.
	Tailored bool `json:"tailored,omitempty"`

	// How robots meta tags of pages are treated. `merge` keeps the stricter of the page's rules and the policy's.
	// `replace` removes the page's rules. `off` does not change pages. Default: `merge`.
	Meta string `json:"meta,omitempty"`

	// How many bytes of a page are searched for its head. The handler does not send these bytes before the search ends.
	// If the head is longer, meta tags after these bytes are not changed, and the log says so once. At most 16 MiB.
	// Default: 131072.
	MetaLimit int `json:"meta_limit,omitempty"`

	// The time between checks of the policy for changes. A negative duration means that the policy is checked only when
	// Caddy loads a configuration (`caddy reload --force`). If a new version has an error, it is rejected, and the last
	// good version stays in force. Default: `2s` for files, `5s` for the storage, `1m` for the web.
	Reload caddy.Duration `json:"reload,omitempty"`

	// The methods that verify crawlers. `lists` uses operators' address lists, fetched daily. `dns` uses
	// forward-confirmed reverse DNS. `signatures` uses Web Bot Auth, with keys fetched from the operators. `embedded`
	// fetches nothing, and uses the address lists that come with the program or with a newer crawler catalog. `off`
	// switches verification off. `embedded` and `off` cannot be combined with other values. The client's address is the
	// one that Caddy determines, so set `trusted_proxies` behind a proxy. Default: `embedded`.
	Verify []string `json:"verify,omitempty"`

	// Ranges of non-public addresses, in CIDR notation. Lists and keys may be fetched from these addresses. Use this
	// setting for crawlers on an intranet. Default: none.
	VerifyFrom []string `json:"verify_from,omitempty"`

	// Lets another server ask this server about requests that the other server has received. It asks at the path
	// `/decide`. The value of this setting is the protocol that it uses. `nginx` is for nginx's auth_request, and
	// `forward` for Traefik's ForwardAuth and Caddy's forward_auth. `envoy` is for Envoy's ext_authz over HTTP with the
	// path prefix `/decide`. Only servers in `trusted_proxies` may ask. These servers also fetch `/robots.txt` and the
	// rights documents from this server. Default: none; clients send their requests to this server themselves.
	Decide string `json:"decide,omitempty"`

	// Audits the site through its public address, like `caddy robots-policy audit`. The findings go to the log, to
	// metrics and, as the event `robots_policy.audited`, to the events app. Default: none.
	Audit *auditor.Config `json:"audit,omitempty"`

	// The file and line of the directive in a Caddyfile, for messages. An adapter sets it.
	Place string `json:"place,omitempty"`

	ctx      caddy.Context
	policies *source.Store
	verifier *identity.Verifier
	handler  *handler.Handler
}

// The possible values of settings.
var (
	enforceValues   = []string{"off", "log", "block"}
	refuseValues    = []string{"respond", "error"}
	robotsTxtValues = []string{"replace", "merge", "off"}
	headerValues    = append(robotstag.ChannelNames(), "off")
	metaValues      = []string{"merge", "replace", "off"}
	decideValues    = []string{"nginx", "forward", "envoy"}
)

func (*Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.robots_policy",
		New: func() caddy.Module { return new(Handler) },
	}
}

// Provision applies the defaults, prepares the channels and loads the policy.
func (h *Handler) Provision(ctx caddy.Context) error {
	h.ctx = ctx
	if _, err := ctx.App("robots_policy"); err != nil { // the app installs the catalog of crawlers
		return err
	}
	requested := h.Enforce
	if err := h.applyDefaults(); err != nil {
		return err
	}
	if err := recorders.Register(ctx, collectors()...); err != nil {
		return err
	}
	methods, err := identity.ParseMethods(h.Verify, h.VerifyFrom)
	if err != nil {
		return err
	}
	h.verifier = identity.New(methods, caddyLog)
	if err := routecheck.OnStart(ctx, ctx.Logger()); err != nil {
		return err
	}
	h.handler = handler.New(h.options(ctx.Logger()))
	running.Store(h.handler, nil)
	h.policies, err = policies.Open(ctx, source.Options{
		Policy: h.Policy, Default: h.Default, Reload: time.Duration(h.Reload), Upstream: h.lastOfUpstream(),
		Logger: ctx.Logger(), OnLoad: warnOnLoad(ctx.Logger(), requested, h.verifier),
	})
	if err != nil && h.Place != "" {
		return fmt.Errorf("%s: %w", h.Place, err)
	}
	if err != nil || h.Audit == nil {
		return err
	}
	return auditor.Start(ctx, h.Audit, h.RobotsTxt == "merge", h.siteOf)
}

// caddyLog returns the log of the running configuration.
func caddyLog() *zap.Logger { return caddy.Log().Named("http.handlers.robots_policy") }

func (h *Handler) options(logger *zap.Logger) handler.Options {
	mode, _ := policy.ParseMode(h.Enforce)
	o := handler.Options{
		Policies: provisioned{h}, MaxMode: mode, RaiseRefusals: h.Refuse == "error",
		RobotsTxt: robotsTxtModes[h.RobotsTxt], MaxAge: time.Duration(*h.RobotsTxtMaxAge),
		Headers: headerChannels(h.Headers), Tailored: h.Tailored, Meta: metaModes[h.Meta], MaxHead: h.MetaLimit,
		Verifier: h.verifier, Logger: logger, Server: server{},
		Metrics: metrics, Recorders: recorders.Running(), Decide: handler.Style(h.Decide),
	}
	o.NoHeaders = o.Headers == 0
	if o.MaxAge == 0 {
		o.MaxAge = -1 // in the configuration, 0 means no caching; in Options, 0 means the default
	}
	return o
}

var (
	robotsTxtModes = map[string]handler.RobotsTxt{
		"replace": handler.RobotsTxtReplace, "merge": handler.RobotsTxtMerge, "off": handler.RobotsTxtOff,
	}
	metaModes = map[string]metainject.Mode{"merge": metainject.Merge, "replace": metainject.Replace, "off": metainject.Off}
)

// provisioned finds the policies of a handler. It can be created before the handler is provisioned, because Get looks
// up the policies when it is called.
type provisioned struct{ *Handler }

func (p provisioned) Get(ctx context.Context, host string) (*source.Snapshot, error) {
	return p.policies.Get(ctx, host)
}

// siteOf returns the policy of a host, or nil if the host has none.
func (h *Handler) siteOf(ctx context.Context, host string) *site.Site {
	s, err := h.policies.Get(ctx, host)
	if err != nil || s == nil {
		return nil
	}
	return s.Site
}

// lastOfUpstream returns a function that finds the upstream's robots.txt for a host. It returns nil if the handler does
// not merge the upstream's robots.txt.
func (h *Handler) lastOfUpstream() func(host string) (below *robotstxt.File, known bool) {
	if h.RobotsTxt != "merge" {
		return nil
	}
	return h.handler.Upstream
}

// ServeHTTP applies the policy to a request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	var err error
	if h.Decide != "" {
		err = h.handler.Decide(w, r)
	} else {
		err = h.handler.Serve(w, r, next)
	}
	if raised, ok := err.(*handler.Error); ok { //nolint:errorlint // other handlers never wrap an error of this type
		return caddyhttp.Error(raised.Status, raised.Err)
	}
	return err
}

func (h *Handler) Describe() routecheck.Description {
	return routecheck.Description{Place: h.Place, Robots: h.RobotsTxt != "off", Verifies: !slices.Contains(h.Verify, "off"), Decides: h.Decide != ""}
}

// Cleanup releases the policy and the verifier. Requests in progress keep using them.
func (h *Handler) Cleanup() error {
	routecheck.OnStop(h.ctx)
	stopRunning(h.handler)
	h.verifier.Close()
	return h.policies.Close()
}

// checkDecide returns an error if robots_policy_decide has a setting that only works on a server that sends pages.
func (h *Handler) checkDecide() error {
	if err := checkValue("decide", h.Decide, decideValues); err != nil {
		return err
	}
	switch {
	case cmp.Or(h.Meta, "off") != "off" || h.MetaLimit != 0:
		return errors.New("robots_policy_decide does not see pages: remove meta and meta_limit")
	case h.RobotsTxt != "" && h.RobotsTxt != "replace":
		return errors.New("robots_policy_decide cannot fetch the upstream's robots.txt: remove robots_txt")
	case h.Tailored:
		return errors.New("robots_policy_decide cannot add Vary: User-Agent to pages: remove tailored")
	case cmp.Or(h.Refuse, "respond") != "respond":
		return errors.New("robots_policy_decide answers another server, so it cannot use the error routes of a site: remove block_with")
	}
	h.Meta = "off"
	return nil
}

// applyDefaults checks the settings and fills in the defaults. It works for both the JSON configuration and the
// Caddyfile.
func (h *Handler) applyDefaults() error {
	if h.Decide != "" {
		if err := h.checkDecide(); err != nil {
			return err
		}
	}
	for _, s := range []struct {
		name   string
		value  *string
		values []string
		def    string
	}{
		{"enforce", &h.Enforce, enforceValues, "block"},
		{"block_with", &h.Refuse, refuseValues, "respond"},
		{"robots_txt", &h.RobotsTxt, robotsTxtValues, "replace"},
		{"meta", &h.Meta, metaValues, "merge"},
	} {
		*s.value = cmp.Or(*s.value, s.def)
		if err := checkValue(s.name, *s.value, s.values); err != nil {
			return err
		}
	}
	if h.RobotsTxtMaxAge == nil {
		def := caddy.Duration(robotsserve.DefaultMaxAge)
		h.RobotsTxtMaxAge = &def
	}
	if err := checkMaxAge(time.Duration(*h.RobotsTxtMaxAge)); err != nil {
		return err
	}
	if h.MetaLimit = cmp.Or(h.MetaLimit, metainject.DefaultMaxHead); h.MetaLimit < minMetaLimit || h.MetaLimit > metainject.MostMaxHead {
		return fmt.Errorf("invalid meta_limit %d: must be from 1KiB to 16MiB", h.MetaLimit)
	}
	return checkHeaders(h.Headers)
}

const minMetaLimit = 1 << 10

// checkValue returns an error unless value is one of the allowed values of a setting.
func checkValue(name, value string, values []string) error {
	if !slices.Contains(values, value) {
		return fmt.Errorf("invalid %s %q: must be %s", name, value, english.List(values, "or"))
	}
	return nil
}

func checkMaxAge(age time.Duration) error {
	switch {
	case age < 0:
		return fmt.Errorf("invalid robots_txt_max_age %s: must be a duration such as 10m, or 0", age)
	case age > robotsserve.MaxMaxAge:
		return fmt.Errorf("invalid robots_txt_max_age %s: must be at most 24h, because crawlers do not use robots.txt for longer (RFC 9309 section 2.4)", age)
	case age > 0 && age < time.Second:
		return fmt.Errorf("invalid robots_txt_max_age %s: must be 1s or more, or 0", age)
	}
	return nil
}

func checkHeaders(names []string) error {
	for i, name := range names {
		if err := checkValue("headers", name, headerValues); err != nil {
			return err
		}
		if slices.Contains(names[:i], name) {
			return fmt.Errorf("\"headers\" has the value %s twice", name)
		}
		if name == "off" && len(names) > 1 {
			return errors.New("\"headers off\" cannot be combined with other values")
		}
	}
	return nil
}

// headerChannels returns the header fields that the setting "headers" names.
func headerChannels(names []string) robotstag.Channels {
	if len(names) == 0 {
		return robotstag.AllChannels
	}
	var channels robotstag.Channels
	for _, name := range names {
		channels |= robotstag.ParseChannel(name)
	}
	return channels
}

var (
	_ caddy.Provisioner  = (*Handler)(nil)
	_ caddy.CleanerUpper = (*Handler)(nil)

	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
)
