// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/optional"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/policies"
)

// Caddy's admin API rejects requests from browsers, so the console has a separate address on this machine. Like the
// admin API, the console checks the Host header. For requests that change policies or drafts, it also checks the Origin
// header and a token.

const (
	defaultListen = "localhost:2020"
	defaultPort   = 2020
)

// listener serves the pages at an address of this machine.
type listener struct {
	http   *http.Server
	hosts  map[string]bool // allowed values of the Host header
	server *server

	anyPort bool // true for a Unix socket: tunnels to the socket can use any port in the Host header
}

// allows reports whether the Host header of a request names this machine.
func (l *listener) allows(host string) bool {
	if l.anyPort {
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		host = net.JoinHostPort(strings.Trim(host, "[]"), "0")
		return host == "localhost:0" || host == "127.0.0.1:0" || host == "[::1]:0"
	}
	return l.hosts[host]
}

// parseListen parses an address. It returns an error if other machines could connect to the address.
func parseListen(text string) (caddy.NetworkAddress, error) {
	a, err := caddy.ParseNetworkAddressWithDefaults(text, "tcp", defaultPort)
	if err == nil && a.Network == "unix" && a.Host != "" {
		return a, nil // the permissions of the socket determine who may open it
	}
	if err != nil || a.PortRangeSize() != 1 || a.Network != "tcp" {
		return a, fmt.Errorf("invalid console address %q: must be a host and a port such as %s", text, defaultListen)
	}
	if ip, err := netip.ParseAddr(a.Host); a.Host != "localhost" && (err != nil || !ip.IsLoopback()) {
		return a, fmt.Errorf("invalid console address %q: must be a loopback address such as %s, or a unix socket. To let people on other machines use the console, put robots_policy_console in a site, behind basic_auth or forward_auth", text, defaultListen)
	}
	return a, nil
}

// Start applies the options and starts to listen. If the port is in use, the console does not work, but the sites are
// not affected.
func (c *Console) Start() error {
	options.Add(c)
	policies.Approvals.Add(&c.Approval)
	if c.Listen != "off" {
		c.listening = optional.Open("console", optional.Funcs[*listener]{Open: c.listen})
	}
	return nil
}

func (c *Console) listen(o *optional.Opening, _ error) (*listener, error) {
	a, err := parseListen(c.Listen)
	if err != nil {
		return nil, err
	}
	if a.IsUnixNetwork() { // Caddy deletes an existing socket at this path
		if f, err := os.Lstat(a.Host); err == nil && f.Mode().Type() != os.ModeSocket {
			return nil, fmt.Errorf("the console cannot listen on %s, because the file exists and is not a socket; choose another name, or delete the file", a.Host)
		}
	}
	ln, err := a.Listen(c.ctx, 0, net.ListenConfig{})
	if err != nil {
		return nil, fmt.Errorf("the console cannot listen on %s: %w", a.JoinHostPort(0), err)
	}
	l, ok := ln.(net.Listener)
	if !ok {
		return nil, errors.New("the console needs a TCP address or a unix socket")
	}
	port := fmt.Sprint(a.StartPort)
	s := &listener{server: &server{local: true, logger: c.logger}, hosts: map[string]bool{}}
	for _, h := range []string{"localhost", "127.0.0.1", "::1", a.Host} {
		s.hosts[net.JoinHostPort(h, port)] = true
	}
	s.anyPort = a.IsUnixNetwork()
	s.http = &http.Server{Handler: s, ReadTimeout: 30 * time.Second, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 64 << 10}
	go func() {
		if err := s.http.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
			o.Broken(fmt.Errorf("the console stopped listening: %w", err))
		}
	}()
	if s.anyPort {
		c.logger.Info("the console is at the unix socket " + a.Host)
	} else {
		c.logger.Info("the console is at http://" + net.JoinHostPort(a.Host, port) + "/")
	}
	return s, nil
}

// ServeHTTP serves the pages to browsers on this machine.
func (l *listener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setHeaders(w.Header())
	switch {
	case !l.allows(strings.ToLower(r.Host)):
		http.Error(w, "The console does not answer under this host name. Use localhost.", http.StatusForbidden)
	case r.Header.Get("Sec-Fetch-Site") == "cross-site" && r.Header.Get("Sec-Fetch-Mode") != "navigate":
		http.Error(w, "Pages of other sites cannot use the console.", http.StatusForbidden)
	case path.Dir(r.URL.Path) != "/" && path.Clean(r.URL.Path) != "/":
		http.Redirect(w, r, "/", http.StatusFound)
	default:
		l.server.ServeHTTP(w, r)
	}
}

// Close stops listening. Responses that have begun get five seconds to end.
func (l *listener) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if l.http.Shutdown(ctx) != nil {
		return l.http.Close() // this closes the remaining connections
	}
	return nil
}
