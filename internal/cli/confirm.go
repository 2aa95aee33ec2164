// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	"github.com/robotspolicy/caddy-robots-policy/claim"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/fleet"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

// confirmation asks servers whether they have loaded a version.
type confirmation struct {
	address string        // address of the admin API; "" means the address in the configuration
	wait    time.Duration // how long servers are asked
}

// askEvery is the time between two requests to a server.
const askEvery = 250 * time.Millisecond

// silentAfter decides which servers of a fleet the command publish does not wait for. These are the servers whose last
// report is older, by at least this duration, than the newest report of the fleet.
const silentAfter = 90 * time.Second

// of waits until the servers have loaded a version, and prints the servers that have loaded it. It asks one server
// directly. If this server belongs to a fleet, it finds out from the storage what the other servers have loaded. It
// returns errUndecided if one of them has not loaded the version, unless that server is silent (see byAnswer).
func (c *confirmation) of(ctx context.Context, say func(string, ...any), s *storage, key, sum string) error {
	ctx, stop := context.WithTimeout(ctx, c.wait)
	defer stop()
	here := c.server(ctx, s, key, sum)
	loaded, missing, silent := others(ctx, s, source.StoragePrefix+key, sum)
	done := publishedSubject{Name: source.StoragePrefix + key, Place: fmt.Sprintf("%s (sha256 %.12s)", s.place(key), sum), Here: here, Loaded: loaded, Missing: missing}.judge()
	if say("%s", done.Text()); here == nil {
		say("loaded by the server at %s", c.addressOf(s))
	}
	for _, group := range []struct {
		words string
		nodes []string
	}{{"loaded by", loaded}, {"not loaded yet by", missing}, {"not heard from for a while:", silent}} {
		if len(group.nodes) > 0 {
			say("%s %s", group.words, english.List(group.nodes, "and"))
		}
	}
	if !done.Holds() {
		return errUndecided
	}
	return nil
}

// publishedSubject holds the data that [published] judges.
type publishedSubject struct {
	Name, Place string
	// the reason why the server whose admin API was asked has not loaded the version; nil if it has loaded it
	Here            error
	Loaded, Missing []string
	Confirmed       claim.Known[bool] `gap:"unconfirmed" what:"not every server has confirmed the version" close:"look in the logs of the servers that have not confirmed it"`
}

// published is the claim that servers have loaded a new version.
var published = claim.Register("published", func(s publishedSubject) claim.Finding {
	f := claim.Finding{Text: "published as " + s.Name + ", in " + s.Place, Unjudged: "written to " + s.Place + "; not every server has confirmed the version"}
	if !s.hasLoaded() {
		f.Unjudged = fmt.Sprintf("written to %s, but no server has confirmed the version: %v", s.Place, s.Here)
	}
	return f
})

// hasLoaded reports whether the command may assume that the version is loaded. This is the case if the server at the
// asked address has loaded it. If no server answers at this address, it is enough if one of the fleet's servers has
// loaded it.
func (s *publishedSubject) hasLoaded() bool {
	return s.Here == nil || len(s.Loaded) > 0 && errors.Is(s.Here, errNoAnswer)
}

func (s publishedSubject) judge() claim.Claim {
	if s.hasLoaded() && len(s.Missing) == 0 {
		s.Confirmed = claim.Read(true, claim.Coverage{})
	}
	return claim.Judge(published, s)
}

// errNoAnswer reports that no server could be asked.
var errNoAnswer = errors.New("no server could be asked")

// addressOf returns the address of the admin API: c.address, or else the address in the configuration, or else Caddy's
// default.
func (c *confirmation) addressOf(s *storage) string {
	if a := s.config.Admin; c.address == "" && a != nil {
		return cmp.Or(a.Listen, caddy.DefaultAdminListen)
	}
	return cmp.Or(c.address, caddy.DefaultAdminListen)
}

// server waits until the server at the address from addressOf has loaded a version. It asks the admin API of this
// server. If the server does not load the version in time, server returns the reason as an error.
func (c *confirmation) server(ctx context.Context, s *storage, key, sum string) error {
	if a := s.config.Admin; a != nil && a.Disabled && c.address == "" {
		return fmt.Errorf("%w, because the configuration has \"admin off\"; when the server has loaded the policy, its log has the line \"policy reloaded\"", errNoAnswer)
	}
	address, name := c.addressOf(s), source.StoragePrefix+key
	path := "/robots_policy/reload?policy=" + url.QueryEscape(name)
	reloaded := false
	for {
		status, err := statusAt(ctx, address, name)
		switch {
		case err != nil:
			return s.unreachable(address, err)
		// An error before the reload can be about another version, published in the meantime.
		case status.SHA256 == sum && (status.Error == "" || reloaded):
			return nil
		case reloaded && status.Error != "":
			return fmt.Errorf("the server at %s did not load the version: %s", address, status.Error)
		case !reloaded && status.Reload != "off": // this makes the server read the storage immediately
			_, _ = adminRequest(ctx, address, http.MethodPost, path) // the next status has the result
			reloaded = true
			continue
		}
		select {
		case <-ctx.Done():
			if status.Reload == "off" {
				return fmt.Errorf("the server at %s has \"reload off\", so it loads the version at the next \"caddy reload --force\"", address)
			}
			return fmt.Errorf("the server at %s serves another version (sha256 %.12s). Either it uses a different storage than this command, or it cannot read the storage", address, status.SHA256)
		case <-time.After(askEvery):
		}
	}
}

// unreachable returns an error about an admin API that does not answer. The error text says how to fix this.
func (s *storage) unreachable(address string, err error) error {
	if _, ok := errors.AsType[notUsedError](err); ok {
		return fmt.Errorf("the server at %s: %w", address, err)
	}
	hint := "if the admin API of the server has another address, give it with --address, such as localhost:2019 or unix//run/caddy/admin.sock"
	switch {
	case strings.HasPrefix(address, "unix/"):
		hint = "run the command as a user who may use the socket of the admin API"
	case s.config.Admin != nil && s.config.Admin.Remote != nil:
		hint = "remote admin needs a client certificate, which this command does not send; run the command on the server"
	}
	return fmt.Errorf("%w at %s (%w); %s", errNoAnswer, address, err, hint)
}

// notUsedError reports that a server does not use a policy.
type notUsedError struct{ error }

// policyStatus is the status of a policy on a server. It has some of the fields of source.Status.
type policyStatus struct {
	Policy, SHA256, Error, Reload string
	Before                        string `json:"before_sha256"`
}

// statusAt requests the status of a policy from a server's admin API.
func statusAt(ctx context.Context, address, name string) (*policyStatus, error) {
	data, err := adminRequest(ctx, address, http.MethodGet, "/robots_policy/")
	if err != nil {
		return nil, err
	}
	var answer struct {
		Policies []policyStatus
		Without  []struct{ Policy, Error string }
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		return nil, fmt.Errorf("the answer cannot be read: %w", err)
	}
	var names []string
	for i := range answer.Policies {
		if names = append(names, answer.Policies[i].Policy); answer.Policies[i].Policy == name {
			return &answer.Policies[i], nil
		}
	}
	for _, w := range answer.Without {
		if names = append(names, w.Policy); w.Policy == name {
			return &policyStatus{Policy: name, Error: w.Error}, nil
		}
	}
	return nil, notUsedError{fmt.Errorf("no site uses the policy %s; the policies in use are: %s", name, cmp.Or(english.List(names, "and"), "none"))}
}

// adminRequest sends a request to the admin API and returns the response body. It stops when ctx ends.
func adminRequest(ctx context.Context, address, method, path string) ([]byte, error) {
	type answer struct {
		data []byte
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		resp, err := caddycmd.AdminAPIRequest(address, method, path, nil, nil)
		if err != nil {
			answers <- answer{nil, err}
			return
		}
		defer resp.Body.Close()
		data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
		answers <- answer{data, err}
	}()
	select {
	case a := <-answers:
		return a.data, a.err
	case <-ctx.Done():
		return nil, fmt.Errorf("the server does not answer: %w", ctx.Err())
	}
}

const maxAnswer = 16 << 20

// others waits until the other servers of a fleet have loaded a version. It learns this from their reports in the
// storage. Servers that have not written a report recently are returned as silent.
func others(ctx context.Context, s *storage, name, sum string) (loaded, missing, silent []string) {
	for {
		nodes, err := fleet.Nodes(ctx, s)
		if err != nil || len(nodes) == 0 {
			return loaded, missing, silent
		}
		loaded, missing, silent = byAnswer(nodes, name, sum)
		if len(missing) == 0 {
			return loaded, missing, silent
		}
		select {
		case <-ctx.Done():
			return loaded, missing, silent
		case <-time.After(4 * askEvery): // each attempt reads the reports of all servers
		}
	}
}

// byAnswer divides servers into three groups by their last reports in the storage. A server is silent if its last
// report is much older than the newest report of all servers. The present time is not used, because the clock of this
// machine may differ from the clock of the storage.
func byAnswer(nodes []fleet.Node, name, sum string) (loaded, missing, silent []string) {
	var newest time.Time
	for i := range nodes {
		if wrote := nodes[i].Wrote; wrote.After(newest) {
			newest = wrote
		}
	}
	for _, n := range nodes {
		served, uses := n.Policies[name]
		switch {
		case served == sum:
			loaded = append(loaded, n.Name)
		case !n.Wrote.IsZero() && newest.Sub(n.Wrote) > silentAfter:
			silent = append(silent, n.Name)
		case uses:
			missing = append(missing, n.Name)
		}
	}
	return loaded, missing, silent
}
