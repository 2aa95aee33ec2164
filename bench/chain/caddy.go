// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/robotspolicy/caddy-robots-policy"
	"github.com/robotspolicy/caddy-robots-policy/bench/internal/workload"
)

func init() {
	caddy.RegisterModule(new(answering))
	httpcaddyfile.RegisterHandlerDirective("bench_answer", func(httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
		return new(answering), nil
	})
	httpcaddyfile.RegisterDirectiveOrder("bench_answer", httpcaddyfile.Before, "reverse_proxy")
}

// answering is a handler that answers from memory. It writes an answer in the same way as reverse_proxy does.
type answering struct{}

// CaddyModule returns the Caddy module information.
func (*answering) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.bench_answer", New: func() caddy.Module { return new(answering) }}
}

func (*answering) ServeHTTP(w http.ResponseWriter, r *http.Request, _ caddyhttp.Handler) error {
	b := workload.BodyOf(r.URL.Path, strings.Contains(r.Header.Get("Accept-Encoding"), "gzip"))
	if b == nil {
		return caddyhttp.Error(http.StatusNotFound, nil)
	}
	h := w.Header()
	h["Content-Type"] = []string{b.Type}
	h["Etag"] = []string{`"origin"`}
	if b.Encoding != "" {
		h["Content-Encoding"] = []string{b.Encoding}
	}
	if !b.Chunked {
		h["Content-Length"] = []string{strconv.Itoa(len(b.Data))}
	}
	w.WriteHeader(http.StatusOK)
	size := 4 << 10 // the first read of reverse_proxy's transport, which also has the header
	for data := b.Data; len(data) > 0; {
		n, err := w.Write(data[:min(size, len(data))])
		if err != nil {
			return err
		}
		data, size = data[n:], 32<<10
		if b.Chunked {
			size = workload.ChunkSize
			if err := http.NewResponseController(w).Flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// handler is the server of one row, which is one of the compared configurations.
type handler struct {
	row *workload.ChainRow
	http.Handler
}

// load starts Caddy with one server for each row.
func load(dir string, rows []workload.ChainRow) ([]handler, error) {
	apps, servers := map[string]any{}, map[string]any{}
	for i := range rows {
		if err := adapt(&rows[i], dir, apps, servers); err != nil {
			return nil, err
		}
	}
	apps["http"] = map[string]any{"servers": servers}
	config, err := json.Marshal(map[string]any{
		"admin":   map[string]any{"disabled": true, "config": map[string]any{"persist": false}},
		"logging": map[string]any{"logs": map[string]any{"default": map[string]any{"level": "ERROR"}}},
		"apps":    apps,
	})
	if err != nil {
		return nil, err
	}
	if err := caddy.Load(config, true); err != nil {
		return nil, err
	}
	app, err := caddy.ActiveContext().App("http")
	if err != nil {
		return nil, err
	}
	var all []handler
	for i := range rows {
		all = append(all, handler{&rows[i], app.(*caddyhttp.App).Servers[rows[i].Name]})
	}
	return all, nil
}

// adapt adapts the Caddyfile of a row, and adds the resulting apps and server to the two maps.
func adapt(row *workload.ChainRow, dir string, apps, servers map[string]any) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	config := workload.Config{
		Template: row.Template, Port: l.Addr().(*net.TCPAddr).Port, Answer: "bench_answer",
		Policy: filepath.Join(dir, row.Name+".yaml"), Dir: dir,
	}
	if row.Policy != nil {
		if err := os.WriteFile(config.Policy, []byte(workload.Policy(*row.Policy)), 0o600); err != nil {
			return err
		}
	}
	text, err := config.Text()
	if err != nil {
		return err
	}
	adapted, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(text), map[string]any{"filename": row.Template})
	if err != nil {
		return fmt.Errorf("%s: %w", row.Template, err)
	}
	var parts struct {
		Apps map[string]json.RawMessage
	}
	if err := json.Unmarshal(adapted, &parts); err != nil {
		return err
	}
	var web struct {
		Servers map[string]json.RawMessage
	}
	if err := json.Unmarshal(parts.Apps["http"], &web); err != nil {
		return err
	}
	for name, app := range parts.Apps {
		apps[name] = app
	}
	for _, server := range web.Servers { // the app has exactly one server
		servers[row.Name] = server
	}
	return nil
}
