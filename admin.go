// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/crawlers/identity"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/catalogstore"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/globaloption"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/policies"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/recorders"
	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
	"github.com/robotspolicy/caddy-robots-policy/site"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

func init() {
	caddy.RegisterModule(new(adminAPI))
}

// adminAPI adds paths to Caddy's admin API. They show the policies in force, explain decisions, and change policies:
//
//	GET  /robots_policy/              the policies, and the catalog of crawlers in use
//	GET  /robots_policy/explain       the decision on a request: agent, url, and optionally address
//	GET  /robots_policy/robots.txt    the robots.txt that a host serves: host
//	GET  /robots_policy/violations    the requests that violate the robots.txt that the crawler had read: since, skip
//	GET  /robots_policy/verification  the state of the address lists, keys and DNS answers that verify crawlers
//	POST /robots_policy/reload        checks now whether the policy or the catalog has a new version, and loads it
//	POST /robots_policy/publish       publishes a version of a policy in Caddy's storage: author, note, undo, version
//	POST /robots_policy/enforce       limits enforcement until the next reload of Caddy: mode
//
// The words after a colon are parameters of the query. If there are several policies, the parameter "policy" names one
// of them.
type adminAPI struct{ logger *zap.Logger }

func (*adminAPI) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "admin.api.robots_policy", New: func() caddy.Module { return new(adminAPI) }}
}

func (a *adminAPI) Provision(ctx caddy.Context) error {
	a.logger = ctx.Logger()
	return nil
}

const adminPath = "/robots_policy/"

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
		route("publish", http.MethodPost, publisher{a.logger}.publish),
		route("enforce", http.MethodPost, a.enforce),
	}
}

func (a *adminAPI) policies(w http.ResponseWriter, r *http.Request) error {
	if r.URL.Path != adminPath {
		routes := a.Routes()
		paths := make([]string, len(routes))
		for i, route := range routes {
			paths[i] = route.Pattern
		}
		return apiError(http.StatusNotFound, fmt.Errorf("not found; the paths are %s", strings.Join(paths, ", ")))
	}
	list := []source.Status{}
	for _, d := range policies.Pool.Documents() {
		list = append(list, d.Status())
	}
	hosts := []source.HostsStatus{}
	for _, h := range policies.Pool.AllHosts() {
		hosts = append(hosts, h.Status())
	}
	absent := []withoutVersion{}
	for _, d := range policies.Pool.Waiting() {
		absent = append(absent, withoutVersion{d.Name, "waiting", d.Problem()})
	}
	for _, d := range policies.Pool.Unavailable() {
		absent = append(absent, withoutVersion{d.Name, "unavailable", d.Problem()})
	}
	return respondJSON(w, http.StatusOK, map[string]any{"policies": list, "without": absent, "hosts": hosts, "catalog": catalogstore.CurrentStatus()})
}

// withoutVersion describes a policy without a version in force. In the state "waiting", no version exists yet. In the
// state "unavailable", it is not known whether a version exists.
type withoutVersion struct {
	Policy string `json:"policy"`
	State  string `json:"state"`
	Error  string `json:"error"`
}

func (*adminAPI) explain(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	u, err := url.Parse(q.Get("url"))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return apiError(http.StatusBadRequest, fmt.Errorf("invalid url %q: must be a URL such as https://www.example.com/news/", q.Get("url")))
	}
	if q.Get("agent") == "" {
		return apiError(http.StatusBadRequest, errors.New("the parameter agent is missing: give a User-Agent, or a product token such as GPTBot"))
	}
	s, how, err := chosenSnapshot(r, u.Host)
	if err != nil {
		return err
	}
	question := site.Question{Agent: q.Get("agent"), URL: u, Now: time.Now(), Below: how.Upstream()}
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

// mergeNote is the comment that the admin API puts before a robots.txt without the lines of the upstream's robots.txt.
const mergeNote = "robots_txt merge: the upstream's robots.txt is not known yet, because the upstream has not answered a request for it since Caddy started. Its lines will be added for crawlers and paths that the policy does not mention"

func isError(p policy.Problem) bool { return p.Severity == policy.Error }

func (*adminAPI) robotsTxt(w http.ResponseWriter, r *http.Request) error {
	host := r.URL.Query().Get("host")
	if name, err := policy.ParseHost(policy.WithoutPort(host)); host != "" && (err != nil || name.Wildcard()) {
		return apiError(http.StatusBadRequest, fmt.Errorf("invalid host %q: must be a host such as www.example.com", host))
	}
	s, how, err := chosenSnapshot(r, host)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	f, _ := robotsserve.Render(s.Site.Policy, host, robotsserve.Options{})
	var other *robotstxt.File
	known := true
	if upstream := how.Upstream(); upstream != nil {
		other, known = upstream(host)
	}
	if other != nil {
		if both, problems, _ := robotsserve.Merge(s.Site.Policy, host, other, robotsserve.Options{}); !slices.ContainsFunc(problems, isError) {
			f = both
		}
	}
	if !known {
		_, err = fmt.Fprintf(w, "# %s\n\n%s", mergeNote, f.Body)
		return err
	}
	w.Header().Set("Etag", f.ETag)
	_, err = w.Write(f.Body)
	return err
}

func (*adminAPI) reload(w http.ResponseWriter, r *http.Request) error {
	catalogstore.Check(r.Context())
	name := r.URL.Query().Get("policy")
	hosts := []source.HostsStatus{}
	for _, h := range policies.Pool.AllHosts() {
		if name != "" && name != h.Name() {
			continue
		}
		if !h.Reload(r.Context()) {
			return apiError(http.StatusServiceUnavailable, fmt.Errorf("reading the policy files of %s takes too long", h.Name()))
		}
		hosts = append(hosts, h.Status())
	}
	var chosen []*source.Document
	if name == "" || len(hosts) == 0 {
		var err error
		if chosen, err = chosenAmong(r, allDocuments()); err != nil {
			return err
		}
	}
	status := http.StatusOK
	catalog := catalogstore.CurrentStatus()
	if catalog.Error != "" {
		status = http.StatusUnprocessableEntity
	}
	results := []source.ReloadReport{}
	for _, d := range chosen {
		o := d.Reload(r.Context())
		if o.Err != nil {
			status = http.StatusUnprocessableEntity
		}
		results = append(results, o.Report(d.Name))
	}
	return respondJSON(w, status, map[string]any{"results": results, "hosts": hosts, "catalog": catalog})
}

// enforce limits what all handlers do with disallowed requests: no handler enforces more strictly than the mode in the
// request, whatever the policies say. Operators use it to switch off blocking.
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
	handlers := override(limit)
	message := "enforcement limited through the admin API until the next reload of Caddy"
	if limit == policy.ModeUnset {
		message = "limit of enforcement removed through the admin API"
	}
	a.logger.Warn(message, zap.String("mode", word), zap.Int("handlers", handlers))
	return respondJSON(w, http.StatusOK, map[string]any{"mode": word, "handlers": handlers})
}

func chosenDocuments(r *http.Request) ([]*source.Document, error) {
	return chosenAmong(r, policies.Pool.Documents())
}

// chosenAmong returns the document whose name is the request's parameter "policy", or all documents if the parameter is
// missing.
func chosenAmong(r *http.Request, all []*source.Document) ([]*source.Document, error) {
	name := r.URL.Query().Get("policy")
	if name == "" {
		return all, nil
	}
	if i := slices.IndexFunc(all, func(d *source.Document) bool { return d.Name == name }); i >= 0 {
		return all[i : i+1], nil
	}
	return nil, apiError(http.StatusNotFound, fmt.Errorf("no site uses a policy %q; the policies in use are: %s", name, namesOf(all)))
}

// served is a policy that a handler serves: a single document, or the policies of a handler whose hosts each have their
// own. Upstream returns a function that finds the upstream's robots.txt, which the site may merge into its own
// robots.txt.
type served interface {
	Upstream() site.Below
}

// chosenSnapshot returns a policy, and its version in force. The request names the policy in the parameter "policy". If
// it names none, there must be only one policy. If each host has its own policy, chosenSnapshot returns the policy of
// the given host.
func chosenSnapshot(r *http.Request, host string) (*source.Snapshot, served, error) {
	for _, h := range policies.Pool.AllHosts() {
		if h.Name() != r.URL.Query().Get("policy") {
			continue
		}
		s, err := h.Get(r.Context(), host)
		if err != nil {
			return nil, nil, apiError(http.StatusServiceUnavailable, err)
		}
		if s == nil {
			err = apiError(http.StatusNotFound, fmt.Errorf("there is no policy for the host %q in %s", host, h.Name()))
		}
		return s, h, err
	}
	chosen, err := chosenDocuments(r)
	switch {
	case err != nil:
		return nil, nil, err
	case len(chosen) == 0:
		return nil, nil, apiError(http.StatusNotFound, errors.New("no policy is loaded"))
	case len(chosen) > 1:
		return nil, nil, apiError(http.StatusBadRequest, fmt.Errorf("there are several policies; set the parameter policy to one of these: %s", namesOf(chosen)))
	}
	return chosen[0].Current(), chosen[0], nil
}

// violationsSince is the default of the parameter "since": violations of the last seven days are listed. A response has
// at most maxViolations rows. It also has the total number of rows, and the value of the parameter "skip" for the next
// request.
const (
	violationsSince = 7 * 24 * time.Hour
	maxViolations   = 1000
)

// violations writes the requests that violate the robots.txt that the crawler had read.
func violations(w http.ResponseWriter, r *http.Request) error {
	since := violationsSince
	if word := r.URL.Query().Get("since"); word != "" {
		var err error
		if since, err = caddy.ParseDuration(word); err != nil || since <= 0 {
			return apiError(http.StatusBadRequest, fmt.Errorf("invalid since %q: must be a duration such as 24h or 30d", word))
		}
	}
	skip := 0
	if word := r.URL.Query().Get("skip"); word != "" {
		var err error
		if skip, err = strconv.Atoi(word); err != nil || skip < 0 {
			return apiError(http.StatusBadRequest, fmt.Errorf("invalid skip %q: must be a number of rows, such as the value of \"next\" in the previous answer", word))
		}
	}
	stored := recorders.RunningStore()
	if stored == nil {
		if !globaloption.HasStore() {
			return apiError(http.StatusNotImplemented, errors.New("violations are stored in the activity database, which this build does not have: "+globaloption.ConsoleMissing))
		}
		return apiError(http.StatusNotFound, errors.New("violations are stored in the activity database, which is off; write `activity DIRECTORY` in the global option robots_policy"))
	}
	all, err := stored.Violations(r.Context(), activity.Since(time.Now(), since), skip, maxViolations)
	if err != nil {
		return apiError(http.StatusInternalServerError, err)
	}
	return respondJSON(w, http.StatusOK, all)
}

var (
	_ caddy.Provisioner = (*adminAPI)(nil)
	_ caddy.AdminRouter = (*adminAPI)(nil)
)
