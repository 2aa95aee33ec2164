// SPDX-License-Identifier: Apache-2.0

// Package globaloption implements the global option robots_policy, and the Caddy app that it configures.
package globaloption

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"

	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/catalogstore"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/optional"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/recorders"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

func init() {
	caddy.RegisterModule(new(App))
	httpcaddyfile.RegisterGlobalOption("robots_policy", parseGlobalOption)
}

// App holds the data that all `robots_policy` handlers of a server share: the catalog of crawlers, and the
// recorders of requests. The global option `robots_policy` configures it.
type App struct {
	// The recorders of requests, by name. `crawler_log` writes one line per request to the log
	// `http.robots_policy.crawler_log`. `evidence` writes a tamper-evident event log. `metrics` counts requests for
	// Prometheus. `activity` stores totals in a database (in builds with the console).
	RecordersRaw caddy.ModuleMap `json:"recorders,omitempty" caddy:"namespace=robots_policy.recorders"`

	// Options that other packages add, by name. With `fleet`, servers with the same storage tell each other which
	// robots.txt crawlers have read. `console` serves the console (in builds with the console).
	OptionsRaw caddy.ModuleMap `json:"options,omitempty" caddy:"namespace=robots_policy.options"`

	// `auto` fetches the released catalog of crawlers once a day. It checks the signature, and what the catalog would
	// change for the running policies. It then stores the catalog for all servers with this storage. Default: the
	// catalog in the program or in the storage.
	Catalog string `json:"catalog,omitempty"`

	// The address that the released catalog is fetched from. Default: the releases of this module.
	CatalogFrom string `json:"catalog_from,omitempty"`

	catalog   *catalogstore.Watcher
	recorders map[string]recorders.Module
	options   []any
	remove    []func()
}

func (*App) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "robots_policy", New: func() caddy.Module { return new(App) }}
}

// Provision installs the catalog of crawlers and loads the recorders. After that it loads the options, because options
// may use recorders.
func (a *App) Provision(ctx caddy.Context) error {
	from, err := a.released()
	if err != nil {
		return err
	}
	a.catalog = catalogstore.New(ctx.Storage(), from, ctx.Logger())
	mods, err := ctx.LoadModule(a, "RecordersRaw")
	if err != nil {
		return fmt.Errorf("loading recorders: %w", err)
	}
	a.recorders = map[string]recorders.Module{}
	for name, mod := range mods.(map[string]any) {
		r, ok := mod.(recorders.Module)
		if !ok {
			return fmt.Errorf("%s is not a recorder", name)
		}
		a.recorders[name] = r
	}
	options, err := ctx.LoadModule(a, "OptionsRaw")
	if err != nil {
		return fmt.Errorf("loading options: %w", err)
	}
	a.options = slices.Collect(maps.Values(options.(map[string]any)))
	return nil
}

// released returns the address of the released catalog, or "" if it is not fetched.
func (a *App) released() (string, error) {
	switch {
	case a.Catalog == "" && a.CatalogFrom == "":
		return "", nil
	case a.Catalog != "auto":
		return "", fmt.Errorf("invalid catalog %q: must be auto", a.Catalog)
	case catalogstore.Key == "":
		return "", errors.New("catalog auto: this program cannot check released catalogs, because it was built without the key of the releases; use a released program, or run `caddy robots-policy crawlers update`")
	}
	from := cmp.Or(a.CatalogFrom, catalogstore.Released)
	if _, err := source.WebAddress(from); err != nil {
		return "", fmt.Errorf("catalog auto: %w", err)
	}
	return from, nil
}

// Start starts watching the catalog, opens the outputs of the recorders, and starts the options. Provision does not do
// this, because `caddy validate` must not lock the directories of a running server. Some outputs are opened in the
// background. Start waits a moment for them, so that the first requests are recorded.
func (a *App) Start() error {
	for name, r := range a.recorders {
		if err := start(r); err != nil {
			return err
		}
		a.remove = append(a.remove, recorders.Running().Add(name, r))
	}
	for _, o := range a.options {
		if err := start(o); err != nil {
			return err
		}
	}
	a.catalog.Start() // last, because Caddy does not stop an app whose start failed
	optional.Wait(startWait)
	return nil
}

// startWait limits the time that the start waits for optional parts.
const startWait = time.Second

func start(module any) error {
	if s, ok := module.(interface{ Start() error }); ok {
		return s.Start()
	}
	return nil
}

// Stop does nothing, because Cleanup does everything.
func (a *App) Stop() error { return nil }

// Cleanup stops watching the catalog. It also removes the recorders from the list of running recorders, so that they
// are not used after Caddy has cleaned them up. Caddy calls Cleanup for every configuration, even if it never ran.
func (a *App) Cleanup() error {
	if a.catalog != nil {
		a.catalog.Stop()
	}
	for _, remove := range a.remove {
		remove()
	}
	return nil
}

// parseGlobalOption parses the global option. Syntax:
//
//	robots_policy {
//	    catalog auto [<address>]
//	    crawler_log
//	    evidence <directory> { ... }
//	    metrics [hosts [<number>|<names...>]] { ... }
//	    fleet [<name>] { ... }
//	    activity <directory> { ... }
//	    console { ... }
//	}
func parseGlobalOption(d *caddyfile.Dispenser, existing any) (any, error) {
	if existing != nil {
		return nil, d.Err("the global option robots_policy is set twice")
	}
	d.Next() // skips the option's name
	if d.NextArg() {
		return nil, d.Err("the global option robots_policy takes a block and no arguments; name the policy file in the directive robots_policy of a site")
	}
	a := &App{RecordersRaw: caddy.ModuleMap{}, OptionsRaw: caddy.ModuleMap{}}
	for d.NextBlock(0) {
		name := d.Val()
		if name == "catalog" {
			if a.Catalog != "" {
				return nil, d.Err("catalog is set twice")
			}
			if !d.Args(&a.Catalog) {
				return nil, d.Err("catalog takes the word auto and, optionally, the address of a catalog other than the released one")
			}
			d.Args(&a.CatalogFrom)
			if d.NextArg() || d.NextBlock(1) {
				return nil, d.ArgErr()
			}
			continue
		}
		into, id := a.RecordersRaw, recorderNamespace+"."+name
		if _, err := caddy.GetModule(id); err != nil {
			into, id = a.OptionsRaw, optionNamespace+"."+name
		}
		if _, err := caddy.GetModule(id); err != nil {
			return nil, unknownOption(d, name)
		}
		if _, ok := into[name]; ok {
			return nil, d.Errf("%s is set twice", name)
		}
		mod, err := caddyfile.UnmarshalModule(d, id)
		if err != nil {
			return nil, err
		}
		into[name] = caddyconfig.JSON(mod, nil)
	}
	return httpcaddyfile.App{Name: "robots_policy", Value: caddyconfig.JSON(a, nil)}, nil
}

const (
	recorderNamespace = "robots_policy.recorders"
	optionNamespace   = "robots_policy.options"
)

// HasStore reports whether this build of Caddy has the activity database.
func HasStore() bool {
	_, err := caddy.GetModule(recorderNamespace + ".activity")
	return err == nil
}

// ConsoleMissing is advice on how to build Caddy with the console.
const ConsoleMissing = "build Caddy with the package github.com/robotspolicy/caddy-robots-policy/console"

func unknownOption(d *caddyfile.Dispenser, name string) error {
	switch name {
	case "activity":
		return d.Err("this build of Caddy has no activity database: " + ConsoleMissing)
	case "console":
		return d.Err("this build of Caddy has no console: " + ConsoleMissing)
	}
	known := []string{"catalog"}
	for _, namespace := range []string{recorderNamespace, optionNamespace} {
		for _, m := range caddy.GetModules(namespace) {
			known = append(known, m.ID.Name())
		}
	}
	return d.Errf("unrecognized option '%s': must be %s", name, english.List(known, "or"))
}

var (
	_ caddy.App          = (*App)(nil)
	_ caddy.Provisioner  = (*App)(nil)
	_ caddy.CleanerUpper = (*App)(nil)
)
