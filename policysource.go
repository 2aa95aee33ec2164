// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/robotspolicy/caddy-robots-policy/internal/policyname"
	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// usedDocument is a handler's share in a document.
type usedDocument struct {
	document *document
	reader   *reader
}

// open finds the policy and prepares all that requests need.
func (h *Handler) open(ctx caddy.Context) error {
	// What is not known now can only be of a request.
	name := caddy.NewReplacer().ReplaceKnown(h.Policy, "")
	teller, err := newTeller(ctx, h.logger)
	if err != nil {
		return err
	}
	if err := register(ctx.GetMetricsRegistry()); err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	if !policyname.IsHostTemplate(name) {
		if h.Default != "" {
			return errors.New("default is for policies with {host} in their name")
		}
		return h.openOne(ctx, name, teller)
	}
	if h.Default != "" {
		other, err := caddy.NewReplacer().ReplaceOrErr(h.Default, true, true)
		if err != nil {
			return fmt.Errorf("the default policy's name %q: %w", h.Default, err)
		}
		if err := h.openOne(ctx, other, teller); err != nil {
			return err
		}
	}
	return h.openHosts(name, teller)
}

// openOne opens a policy for all hosts.
func (h *Handler) openOne(ctx caddy.Context, name string, t *teller) error {
	src, err := newSource(ctx, name)
	if err != nil {
		return err
	}
	follow, interval, err := parseReload(h.Reload, src)
	if err != nil {
		return err
	}
	h.used, err = useDocument(ctx, &reader{
		src: src, follow: follow, interval: interval, teller: t, merges: h.upstreams != nil,
		take: func(l *live) {
			h.live.Store(l)
			if l.site.File.Spec.Enforcement.Impostors > policy.ModeOff && !h.ids.accuses() && h.told.first("impostors") {
				h.logger.Warn("the policy has enforcement.impostors, but " + noImpostors)
			}
		},
	})
	return err
}

// openHosts opens the policies of a hostTemplate.
func (h *Handler) openHosts(name string, t *teller) error {
	template, err := policyname.ParseHostTemplate(name)
	if err != nil {
		return err
	}
	if err := checkDir(template.Dir()); err != nil {
		return err
	}
	follow, interval, err := parseReload(h.Reload, &fileSource{path: template.String()})
	if err != nil {
		return err
	}
	v, _, err := documents.LoadOrNew("hosts "+template.String(), func() (caddy.Destructor, error) { return newHostSet(template) })
	if err != nil {
		return err
	}
	h.hosts = v.(*hostSet)
	h.hostReader = &hostReader{follow: follow, interval: interval, teller: t, merges: h.upstreams != nil}
	h.hosts.join(h.hostReader)
	return nil
}

// checkDir returns an error unless a name is that of a directory.
func checkDir(name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	return within(ctx, "the directory of the policy files", func() error {
		info, err := os.Stat(name)
		if err != nil {
			return fmt.Errorf("the directory of the policy files: %w", err)
		}
		if !info.IsDir() {
			return fmt.Errorf("%s is no directory", name)
		}
		return nil
	})
}

// policyOf returns the policy for a request, or nil if its host has none. The
// error is the answer to the request.
func (h *Handler) policyOf(r *http.Request) (*live, error) {
	if h.hosts != nil {
		if l, err := h.hosts.find(r.Context(), r.Host); l != nil || err != nil {
			return l, err
		}
	}
	return h.live.Load(), nil
}

// useDocument joins the document of the reader's source.
func useDocument(ctx caddy.Context, r *reader) (*usedDocument, error) {
	key := r.src.key()
	v, _, err := documents.LoadOrNew(key, func() (caddy.Destructor, error) { return &document{key: key, name: r.src.name()}, nil })
	if err != nil {
		return nil, err
	}
	d := v.(*document)
	if err := d.open(ctx, r); err != nil {
		_, _ = documents.Delete(key)
		return nil, err
	}
	d.join(r)
	return &usedDocument{document: d, reader: r}, nil
}

// release leaves the document.
func (u *usedDocument) release() error {
	u.document.leave(u.reader)
	_, err := documents.Delete(u.document.key)
	return err
}

// close lets go of what open got, also if open failed.
func (h *Handler) close() error {
	var errs []error
	if h.hostReader != nil {
		h.hosts.leave(h.hostReader)
		_, err := documents.Delete("hosts " + h.hosts.template.String())
		errs = append(errs, err)
		h.hostReader = nil
	}
	if h.used != nil {
		errs = append(errs, h.used.release())
		h.used = nil
	}
	return errors.Join(errs...)
}

// newSource finds out what a policy's name stands for.
func newSource(ctx caddy.Context, name string) (source, error) {
	switch {
	case name == "":
		return nil, errors.New("no policy file is given")
	case policyname.IsWebAddress(name):
		return newWebSource(name)
	case strings.HasPrefix(name, policyname.StoragePrefix):
		key, err := policyname.StorageKey(name)
		if err != nil {
			return nil, err
		}
		return &storageSource{storage: ctx.Storage(), at: key}, nil
	}
	// Caddy's own function for this goes by the directory in which it started.
	path, err := filepath.Abs(name)
	if err != nil {
		return nil, fmt.Errorf("finding the policy file: %w", err)
	}
	return &fileSource{path: path}, nil
}

// parseReload reads how often to look at a source.
func parseReload(word string, src source) (follow bool, interval time.Duration, err error) {
	usual, least := src.pace()
	switch word {
	case "":
		return true, usual, nil
	case "off":
		return false, 0, nil
	}
	interval, err = caddy.ParseDuration(word)
	if err != nil {
		return false, 0, fmt.Errorf("%q is no value of reload: it takes off, or how often to look, such as 10s", word)
	}
	if interval < least {
		return false, 0, fmt.Errorf("reload %s: %s cannot be looked at more often than every %s; to switch this off, write: reload off", word, src.name(), least)
	}
	return true, interval, nil
}
