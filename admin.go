// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/internal/cataloguestore"
	"github.com/robotspolicy/caddy-robots-policy/internal/identity"
	"github.com/robotspolicy/caddy-robots-policy/internal/policystore"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
	"github.com/robotspolicy/caddy-robots-policy/site"
	"github.com/robotspolicy/caddy-robots-policy/site/compare"
)

func init() {
	caddy.RegisterModule(new(adminAPI))
}

// adminAPI shows in Caddy's admin API which policies are served, and why a request
// gets what it gets:
//
//	GET  /robots_policy/              the policies, and the catalogue of crawlers in use
//	GET  /robots_policy/explain       what happens to a request: agent, url, optionally the client's address
//	GET  /robots_policy/robots.txt    as it is served: host
//	GET  /robots_policy/violations    what crawlers fetched against the robots.txt that they had read: since
//	GET  /robots_policy/verification  what crawlers are verified by
//	POST /robots_policy/reload        loads a new version of the policy, and of the catalogue, now
//	POST /robots_policy/enforce       limits enforcement until the next reload of Caddy: mode
//
// Where there are several policies, the parameter policy takes the name of one.
type adminAPI struct {
	logger *zap.Logger
}

// CaddyModule returns the Caddy module information.
func (*adminAPI) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "admin.api.robots_policy", New: func() caddy.Module { return new(adminAPI) }}
}

// Provision implements caddy.Provisioner.
func (a *adminAPI) Provision(ctx caddy.Context) error {
	a.logger = ctx.Logger()
	return nil
}

const adminPath = "/robots_policy/"

// Routes implements caddy.AdminRouter.
func (a *adminAPI) Routes() []caddy.AdminRoute {
	route := func(path, method string, f caddy.AdminHandlerFunc) caddy.AdminRoute {
		return caddy.AdminRoute{Pattern: adminPath + path, Handler: caddy.AdminHandlerFunc(
			func(w http.ResponseWriter, r *http.Request) error {
				if r.Method != method {
					w.Header().Set("Allow", method)
					return apiError(http.StatusMethodNotAllowed, errors.New("method not allowed"))
				}
				return f(w, r)
			})}
	}
	return []caddy.AdminRoute{
		route("", http.MethodGet, a.policies),
		route("explain", http.MethodGet, a.explain),
		route("robots.txt", http.MethodGet, a.robotsTxt),
		route("violations", http.MethodGet, violations),
		route("verification", http.MethodGet, a.verification),
		route("reload", http.MethodPost, a.reload),
		route("enforce", http.MethodPost, a.enforce),
	}
}

// policyStatus is the status of a policy.
type policyStatus struct {
	Policy   string                 `json:"policy"` // its name in the configuration
	SHA256   string                 `json:"sha256"`
	Since    time.Time              `json:"since"`
	Rules    int                    `json:"rules"`
	Warnings policyfile.Diagnostics `json:"warnings"`
	// Why the current state of the source is not served; absent if it is.
	Error      string             `json:"error,omitempty"`
	ErrorSince *time.Time         `json:"error_since,omitempty"`
	Checked    time.Time          `json:"checked"`
	Reload     string             `json:"reload"` // how often the source is checked, or off
	Sites      int                `json:"sites"`  // the handlers that use the policy
	Watching   int                `json:"watching"`
	Older      []string           `json:"older_sha256,omitempty"` // versions that handlers with reload off still serve
	Reloads    policystore.Counts `json:"reloads"`
}

func statusOf(d *policystore.Document) policyStatus {
	s := d.Status()
	p := policyStatus{
		Policy: d.Name, SHA256: s.Current.SHA256, Since: s.Current.Since.UTC(), Rules: len(s.Current.Site.File.Spec.Rules),
		Warnings: s.Current.Warnings, Checked: s.Checked.UTC(), Reload: intervalText(s.Interval),
		Sites: s.Subscribers, Watching: s.Watching, Older: s.Older, Reloads: s.Counts,
	}
	if p.Warnings == nil {
		p.Warnings = policyfile.Diagnostics{}
	}
	if s.Err != nil {
		since := s.ErrSince.UTC()
		p.Error, p.ErrorSince = s.Err.Error(), &since
	}
	return p
}

// hostsStatus is the status of a policy with a file for each host.
type hostsStatus struct {
	Policy  string             `json:"policy"`
	Loaded  int                `json:"loaded"`          // files in memory
	Broken  int                `json:"broken"`          // of them, those with an error now
	Missing int                `json:"missing"`         // files known not to exist
	Error   string             `json:"error,omitempty"` // of their directory; absent if it can be read
	Reload  string             `json:"reload"`
	Sites   int                `json:"sites"`
	Reloads policystore.Counts `json:"reloads"`
}

func hostsStatusOf(h *policystore.Hosts) hostsStatus {
	s := h.Status()
	p := hostsStatus{
		Policy: h.Name(), Loaded: s.Loaded, Broken: s.Broken, Missing: s.Missing,
		Reload: intervalText(s.Interval), Sites: s.Subscribers, Reloads: s.Counts,
	}
	if s.Err != nil {
		p.Error = s.Err.Error()
	}
	return p
}

func intervalText(d time.Duration) string {
	if d == 0 {
		return "off"
	}
	return d.String()
}

func (a *adminAPI) policies(w http.ResponseWriter, r *http.Request) error {
	if r.URL.Path != adminPath {
		routes := a.Routes()
		paths := make([]string, len(routes))
		for i, route := range routes {
			paths[i] = route.Pattern
		}
		return apiError(http.StatusNotFound, fmt.Errorf("not found; there are %s", strings.Join(paths, ", ")))
	}
	list := []policyStatus{}
	for _, d := range policystore.Documents() {
		list = append(list, statusOf(d))
	}
	hosts := []hostsStatus{}
	for _, h := range policystore.AllHosts() {
		hosts = append(hosts, hostsStatusOf(h))
	}
	return respondJSON(w, http.StatusOK, map[string]any{"policies": list, "hosts": hosts, "catalogue": cataloguestore.CurrentStatus()})
}

func (*adminAPI) explain(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	u, err := url.Parse(q.Get("url"))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return apiError(http.StatusBadRequest, fmt.Errorf("invalid url %q: must be a URL such as https://www.example.com/news/", q.Get("url")))
	}
	if q.Get("agent") == "" {
		return apiError(http.StatusBadRequest, errors.New("agent is missing: must be a User-Agent, or a product token such as GPTBot"))
	}
	s, merges, err := chosenSnapshot(r, u.Host)
	if err != nil {
		return err
	}
	question := site.Question{Agent: q.Get("agent"), URL: u, Now: time.Now(), Merges: merges}
	if address := q.Get("address"); address != "" {
		addr, err := netip.ParseAddr(address)
		if err != nil {
			return apiError(http.StatusBadRequest, fmt.Errorf("invalid address %q: must be an IP address such as 192.0.2.1 or 2001:db8::1", address))
		}
		question.Verify = identity.ExplainRunning(addr)
	}
	return respondJSON(w, http.StatusOK, s.Site.Explain(question))
}

func (*adminAPI) verification(w http.ResponseWriter, _ *http.Request) error {
	return respondJSON(w, http.StatusOK, identity.CurrentStatus())
}

// mergeNote says what a robots.txt that is shown without a request lacks.
const mergeNote = "robots_txt merge: when this is served, the lines of the upstream's robots.txt are added where the policy says nothing"

func (*adminAPI) robotsTxt(w http.ResponseWriter, r *http.Request) error {
	host := r.URL.Query().Get("host")
	if name, err := policy.ParseHost(host); host != "" && (err != nil || name.Wildcard()) {
		return apiError(http.StatusBadRequest, fmt.Errorf("invalid host %q: must be a host such as www.example.com", host))
	}
	s, merges, err := chosenSnapshot(r, host)
	if err != nil {
		return err
	}
	f, _ := robotsserve.Render(s.Site.Policy, host, robotsserve.Options{})
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if merges {
		_, err = fmt.Fprintf(w, "# %s\n\n%s", mergeNote, f.Body)
		return err
	}
	w.Header().Set("Etag", f.ETag)
	_, err = w.Write(f.Body)
	return err
}

// reloadResult is the result of loading a policy anew.
type reloadResult struct {
	Policy  string        `json:"policy"`
	Result  string        `json:"result"` // applied, unchanged or rejected
	SHA256  string        `json:"sha256,omitempty"`
	Error   string        `json:"error,omitempty"`
	Changes []string      `json:"changes,omitempty"`
	Details *compare.Diff `json:"details,omitempty"`
}

func resultOf(name string, o policystore.Outcome) reloadResult {
	result := reloadResult{Policy: name, Result: "unchanged"}
	switch {
	case o.Err != nil:
		result.Result, result.Error = "rejected", o.Err.Error()
	case o.Now != o.Before:
		result.Result, result.Changes, result.Details = "applied", o.Changes.Words(), o.Changes
	}
	if o.Now != nil {
		result.SHA256 = o.Now.SHA256
	}
	return result
}

func (*adminAPI) reload(w http.ResponseWriter, r *http.Request) error {
	cataloguestore.Check(r.Context())
	name := r.URL.Query().Get("policy")
	hosts := []hostsStatus{}
	for _, h := range policystore.AllHosts() {
		if name != "" && name != h.Name() {
			continue
		}
		if !h.Reload(r.Context()) {
			return apiError(http.StatusServiceUnavailable, fmt.Errorf("reading the directory of %s takes too long", h.Name()))
		}
		hosts = append(hosts, hostsStatusOf(h))
	}
	var chosen []*policystore.Document
	if name == "" || len(hosts) == 0 {
		var err error
		if chosen, err = chosenDocuments(r); err != nil {
			return err
		}
	}
	status := http.StatusOK
	results := []reloadResult{}
	for _, d := range chosen {
		o := d.Reload(r.Context())
		o.Notify()
		if o.Err != nil {
			status = http.StatusUnprocessableEntity
		}
		results = append(results, resultOf(d.Name, o))
	}
	return respondJSON(w, status, map[string]any{"results": results, "hosts": hosts})
}

// enforce is the off switch: it limits what all handlers do about crawlers, whatever
// their policies say.
func (a *adminAPI) enforce(w http.ResponseWriter, r *http.Request) error {
	word := r.URL.Query().Get("mode")
	if err := checkValue("mode", word, enforceValues); err != nil {
		return apiError(http.StatusBadRequest, fmt.Errorf("%w; block removes the limit", err))
	}
	mode, _ := policy.ParseMode(word)
	limit := mode
	if mode == policy.ModeBlock {
		limit = policy.ModeUnset
	}
	handlers := edges.override(limit)
	a.logger.Warn("enforcement limited through the admin API until the next reload of Caddy",
		zap.String("mode", word), zap.Int("handlers", handlers))
	return respondJSON(w, http.StatusOK, map[string]any{"mode": word, "handlers": handlers})
}

// chosenDocuments returns the policy that a request names, or all.
func chosenDocuments(r *http.Request) ([]*policystore.Document, error) {
	all := policystore.Documents()
	name := r.URL.Query().Get("policy")
	if name == "" {
		return all, nil
	}
	for _, d := range all {
		if d.Name == name {
			return []*policystore.Document{d}, nil
		}
	}
	return nil, apiError(http.StatusNotFound, fmt.Errorf("no site uses a policy %q; there are: %s", name, namesOf(all)))
}

// chosenSnapshot returns the policy for a host that a request asks about, and
// whether a site merges the upstream's robots.txt into it.
func chosenSnapshot(r *http.Request, host string) (*policystore.Snapshot, bool, error) {
	for _, h := range policystore.AllHosts() {
		if h.Name() != r.URL.Query().Get("policy") {
			continue
		}
		s, err := h.Get(r.Context(), host)
		if err != nil {
			return nil, false, apiError(http.StatusServiceUnavailable, err)
		}
		if s == nil {
			err = apiError(http.StatusNotFound, fmt.Errorf("the host %q has no policy of its own in %s", host, h.Name()))
		}
		return s, h.Merges(), err
	}
	chosen, err := chosenDocuments(r)
	switch {
	case err != nil:
		return nil, false, err
	case len(chosen) == 0:
		return nil, false, apiError(http.StatusNotFound, errors.New("no policy is loaded"))
	case len(chosen) > 1:
		return nil, false, apiError(http.StatusBadRequest, fmt.Errorf("there are several policies; the parameter policy must be one of: %s", namesOf(chosen)))
	}
	return chosen[0].Status().Current, chosen[0].Merges(), nil
}

func namesOf(ds []*policystore.Document) string {
	names := make([]string, len(ds))
	for i, d := range ds {
		names[i] = d.Name
	}
	return strings.Join(names, ", ")
}

var (
	_ caddy.Provisioner = (*adminAPI)(nil)
	_ caddy.AdminRouter = (*adminAPI)(nil)
)
