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

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

func init() {
	caddy.RegisterModule(adminAPI{})
}

// adminAPI shows in Caddy's admin API which policies are served, and why a
// request gets what it gets:
//
//	GET  /robots_policy/            the policies
//	GET  /robots_policy/explain       what happens to a request: agent, url, and the client's address
//	GET  /robots_policy/robots.txt    as it is served: host
//	GET  /robots_policy/verification  what crawlers are verified by
//	POST /robots_policy/reload        looks for a new policy now
//
// Each takes the name of a policy as the parameter policy, if there are several.
type adminAPI struct{}

// CaddyModule returns the Caddy module information.
func (adminAPI) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "admin.api.robots_policy", New: func() caddy.Module { return new(adminAPI) }}
}

// Routes implements caddy.AdminRouter.
func (a adminAPI) Routes() []caddy.AdminRoute {
	route := func(path, method string, f caddy.AdminHandlerFunc) caddy.AdminRoute {
		return caddy.AdminRoute{Pattern: "/robots_policy/" + path, Handler: caddy.AdminHandlerFunc(
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
		route("verification", http.MethodGet, a.verification),
		route("reload", http.MethodPost, a.reload),
	}
}

// policyStatus is what the admin API says about a policy.
type policyStatus struct {
	Policy   string                 `json:"policy"` // the source, as it is named
	SHA256   string                 `json:"sha256"`
	Since    time.Time              `json:"since"`
	Rules    int                    `json:"rules"`
	Warnings policyfile.Diagnostics `json:"warnings"`
	// Why the source's state now is not what is served; absent if it is.
	Error      string     `json:"error,omitempty"`
	ErrorSince *time.Time `json:"error_since,omitempty"`
	Checked    time.Time  `json:"checked"`
	Reload     string     `json:"reload"` // how often it is looked at, or off
	Sites      int        `json:"sites"`  // the handlers that use it
	Following  int        `json:"following"`
	Older      []string   `json:"older_sha256,omitempty"` // what those that do not follow still serve
	Reloads    counts     `json:"reloads"`
}

func (d *document) policyStatus() policyStatus {
	s := d.status()
	p := policyStatus{
		Policy: d.name, SHA256: s.current.sum, Since: s.current.since.UTC(), Rules: len(s.current.site.File.Spec.Rules),
		Warnings: s.current.warnings, Checked: s.checked.UTC(), Reload: "off",
		Sites: s.readers, Following: s.follow, Older: s.older, Reloads: s.counts,
	}
	if p.Warnings == nil {
		p.Warnings = policyfile.Diagnostics{}
	}
	if s.interval > 0 {
		p.Reload = s.interval.String()
	}
	if s.err != nil {
		since := s.errAt.UTC()
		p.Error, p.ErrorSince = s.err.Error(), &since
	}
	return p
}

// hostsAnswer is what the admin API says about a policy with a file for each
// host.
type hostsAnswer struct {
	Policy  string `json:"policy"`
	Held    int    `json:"held"`            // hosts whose policies are in memory
	Wrong   int    `json:"wrong"`           // of them, those whose files are wrong now
	Missing int    `json:"missing"`         // hosts that are known to have no file
	Error   string `json:"error,omitempty"` // of their directory; absent if it can be read
	Reload  string `json:"reload"`
	Sites   int    `json:"sites"`
	Reloads counts `json:"reloads"`
}

func (s *hostSet) answer() hostsAnswer {
	st := s.status()
	a := hostsAnswer{
		Policy: s.template.String(), Held: st.held, Wrong: st.broken, Missing: st.misses,
		Reload: "off", Sites: st.readers, Reloads: st.counts,
	}
	if st.interval > 0 {
		a.Reload = st.interval.String()
	}
	if st.err != nil {
		a.Error = st.err.Error()
	}
	return a
}

func (adminAPI) policies(w http.ResponseWriter, r *http.Request) error {
	if r.URL.Path != "/robots_policy/" {
		return apiError(http.StatusNotFound, errors.New("there are /robots_policy/, /robots_policy/explain, /robots_policy/robots.txt, /robots_policy/verification and /robots_policy/reload"))
	}
	list := []policyStatus{}
	for _, d := range servedDocuments() {
		list = append(list, d.policyStatus())
	}
	hosts := []hostsAnswer{}
	for _, s := range allHostSets() {
		hosts = append(hosts, s.answer())
	}
	return answer(w, http.StatusOK, map[string]any{"policies": list, "hosts": hosts})
}

func (adminAPI) explain(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	u, err := url.Parse(q.Get("url"))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return apiError(http.StatusBadRequest, fmt.Errorf("the parameter url is %q and no URL such as https://www.example.com/news/", q.Get("url")))
	}
	if q.Get("agent") == "" {
		return apiError(http.StatusBadRequest, errors.New("who asks? The parameter agent takes a User-Agent, or a product token such as GPTBot"))
	}
	l, merges, err := servedPolicy(r, u.Host)
	if err != nil {
		return err
	}
	question := site.Question{Agent: q.Get("agent"), URL: u, Now: time.Now(), Merges: merges}
	if address := q.Get("address"); address != "" {
		addr, err := netip.ParseAddr(address)
		if err != nil {
			return apiError(http.StatusBadRequest, fmt.Errorf("the parameter address is %q and no IP address such as 192.0.2.1 or 2001:db8::1", address))
		}
		question.Verify = verifyByHeld(addr)
	}
	return answer(w, http.StatusOK, l.site.Explain(question))
}

func (adminAPI) robotsTxt(w http.ResponseWriter, r *http.Request) error {
	host := r.URL.Query().Get("host")
	if name, err := policy.ParseHost(host); host != "" && (err != nil || name.Wildcard()) {
		return apiError(http.StatusBadRequest, fmt.Errorf("the parameter host is %q and no host such as www.example.com", host))
	}
	l, merges, err := servedPolicy(r, host)
	if err != nil {
		return err
	}
	f, _ := robotsserve.Render(l.site.Policy, host, robotsserve.Options{})
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if merges {
		// What is served is another file then.
		_, err = fmt.Fprintf(w, "# %s\n\n%s", mergedLater, f.Body)
		return err
	}
	w.Header().Set("ETag", f.ETag)
	_, err = w.Write(f.Body)
	return err
}

// mergedLater is what is to be said of a robots.txt that is shown without a
// request.
const mergedLater = "robots_txt merge: when this is served, lines of the site's own robots.txt are added where the policy says nothing"

// reloaded is what the admin API says came of looking for a new policy.
type reloaded struct {
	Policy  string        `json:"policy"`
	Result  string        `json:"result"` // taken, unchanged or refused
	SHA256  string        `json:"sha256,omitempty"`
	Error   string        `json:"error,omitempty"`
	Changes []string      `json:"changes,omitempty"`
	Details *site.Changes `json:"details,omitempty"`
}

func (adminAPI) reload(w http.ResponseWriter, r *http.Request) error {
	name := r.URL.Query().Get("policy")
	hosts := []hostsAnswer{}
	for _, s := range allHostSets() {
		if name != "" && name != s.template.String() {
			continue
		}
		if !s.reload(r.Context()) {
			return apiError(http.StatusServiceUnavailable, fmt.Errorf("the directory of %s does not answer", s.template))
		}
		hosts = append(hosts, s.answer())
	}
	var chosen []*document
	if name == "" || len(hosts) == 0 {
		var err error
		if chosen, err = chosenDocuments(r); err != nil {
			return err
		}
	}
	status := http.StatusOK
	results := []reloaded{}
	for _, d := range chosen {
		o := d.reload(r.Context())
		o.tell()
		result := o.told(d.name)
		if o.err != nil {
			status = http.StatusUnprocessableEntity
		}
		results = append(results, result)
	}
	return answer(w, status, map[string]any{"results": results, "hosts": hosts})
}

// told puts an outcome into the words of the admin API.
func (o outcome) told(name string) reloaded {
	result := reloaded{Policy: name, Result: "unchanged"}
	switch {
	case o.err != nil:
		result.Result, result.Error = "refused", o.err.Error()
	case o.now != o.before:
		result.Result, result.Changes, result.Details = "taken", o.changes.Words(), o.changes
	}
	if o.now != nil {
		result.SHA256 = o.now.sum
	}
	return result
}

// chosenDocuments are those of the name that a request gives, or all.
func chosenDocuments(r *http.Request) ([]*document, error) {
	all := servedDocuments()
	name := r.URL.Query().Get("policy")
	if name == "" {
		return all, nil
	}
	for _, d := range all {
		if d.name == name {
			return []*document{d}, nil
		}
	}
	return nil, apiError(http.StatusNotFound, fmt.Errorf("no site uses a policy %q; there are: %s", name, namesOf(all)))
}

// servedPolicy is the policy for a host that a request asks about, and whether
// robots.txt is merged under it.
func servedPolicy(r *http.Request, host string) (*live, bool, error) {
	for _, s := range allHostSets() {
		if s.template.String() != r.URL.Query().Get("policy") {
			continue
		}
		l, err := s.find(r.Context(), host)
		if err != nil {
			return nil, false, apiError(http.StatusServiceUnavailable, err)
		}
		if l == nil {
			err = apiError(http.StatusNotFound, fmt.Errorf("the host %q has no policy of its own in %s", host, s.template.String()))
		}
		return l, s.merges(), err
	}
	chosen, err := chosenDocuments(r)
	switch {
	case err != nil:
		return nil, false, err
	case len(chosen) == 0:
		return nil, false, apiError(http.StatusNotFound, errors.New("no policy is loaded"))
	case len(chosen) > 1:
		return nil, false, apiError(http.StatusBadRequest, fmt.Errorf("which policy? The parameter policy takes one of: %s", namesOf(chosen)))
	}
	return chosen[0].status().current, chosen[0].merges(), nil
}

func namesOf(ds []*document) string {
	names := make([]string, len(ds))
	for i, d := range ds {
		names[i] = d.name
	}
	return strings.Join(names, ", ")
}

func answer(w http.ResponseWriter, status int, v any) error {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	return writeJSON(w, v)
}

func apiError(status int, err error) error {
	return caddy.APIError{HTTPStatus: status, Err: err}
}

var _ caddy.AdminRouter = (*adminAPI)(nil)
