// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"context"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/crawlers/verify"
	"github.com/robotspolicy/caddy-robots-policy/crawlers/webbotauth"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/outbound"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/refcount"
)

// A policy may name at most maxPolicyLists address lists, each with at most maxPolicyPrefixes prefixes. An address list
// of a catalog may have at most maxPrefixes prefixes.
const (
	maxPolicyLists    = 32
	maxPolicyPrefixes = 20_000
	maxPrefixes       = 100_000
)

// engines holds the engines in use, keyed by their methods. The variable is global because Caddy loads a new
// configuration while the previous one is still running, and does not pass values from one to the other.
var engines refcount.Pool[*engine]

// engine verifies clients for all verifiers with the same methods. An engine survives reloads of the configuration, so
// its data need not be fetched again.
type engine struct {
	methods    Methods
	lists      *verify.Lists
	verifier   *verify.Verifier
	signatures *webbotauth.Verifier // nil unless methods.Signatures
	sources    sources
	policies   sync.Map // maps weak.Pointer[crawlers.Identities] to the URLs of its acquired lists ([]string)

	started atomic.Bool
	mu      sync.Mutex // protects the fields below
	closed  bool
}

func newEngine(m Methods, dns verify.DNSOptions, logger func() *zap.Logger) *engine {
	e := &engine{methods: m, sources: sources{logger: logger}}
	e.lists = verify.NewLists(nil, verify.ListOptions{Report: e.sources.listFetched, Client: listClient(m)})
	dns.Report = e.sources.lookedUp
	e.verifier = verify.New(e.lists, dns)
	if m.Signatures {
		e.signatures = webbotauth.New(webbotauth.Options{
			AllowedRanges: m.AllowedRanges, Report: e.sources.keysFetched, Forgot: e.sources.noncesForgotten,
		})
	}
	return e
}

// listClient returns a client that fetches address lists without a proxy. The client connects only to public addresses
// and the allowed ranges. It follows at most three redirects, and only to https URLs.
func listClient(m Methods) *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy = nil
	transport.DialContext = outbound.Dialer(10*time.Second, m.AllowedRanges).DialContext
	return &http.Client{Transport: transport, CheckRedirect: outbound.CheckRedirect}
}

// close stops fetching. Requests in progress may still use e.
func (e *engine) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	e.lists.Stop()
	if e.signatures != nil {
		e.signatures.Close()
	}
}

// start begins to refresh the address lists. It is called for the first request that needs verification, so validating
// a configuration does not fetch lists.
func (e *engine) start() {
	if !e.methods.Lists || e.started.Load() {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed {
		e.lists.Start()
	}
	e.started.Store(true)
}

// use acquires the address lists of id that the embedded catalog does not have. They come from a policy or from a newer
// catalog. use releases the lists when the garbage collector frees id, because requests and logs may use id longer than
// the configuration does.
func (e *engine) use(id *crawlers.Identities) {
	listed, own := id.CatalogLists(), id.OwnLists()
	if len(listed)+len(own) == 0 {
		return
	}
	key := weak.Make(id)
	if _, ok := e.policies.Load(key); ok {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, ok := e.policies.Load(key); ok || e.closed {
		return
	}
	if err := e.lists.Acquire(listed, maxPrefixes); err != nil {
		e.sources.bound("too many address lists; lists that are in the newer catalog, but not in the built-in catalog, are not used", zap.Error(err))
		listed = nil
	}
	if len(own) > maxPolicyLists {
		e.sources.bound("a policy names too many address lists; those beyond the limit are not used", zap.Int("lists", len(own)), zap.Int("limit", maxPolicyLists))
		own = own[:maxPolicyLists]
	}
	if err := e.lists.Acquire(own, maxPolicyPrefixes); err != nil {
		e.sources.bound("the policies name too many address lists; the lists of some policies are not used", zap.Error(err))
		own = nil
	}
	e.policies.Store(key, slices.Concat(listed, own))
	runtime.AddCleanup(id, e.release, key)
}

func (e *engine) release(key weak.Pointer[crawlers.Identities]) {
	if urls, ok := e.policies.LoadAndDelete(key); ok {
		e.lists.Release(urls.([]string))
	}
}

// canceledCtx is a context that is already done. Lookups with this context use only the cache and do not wait.
var canceledCtx = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()
