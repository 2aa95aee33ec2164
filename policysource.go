// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/caddyserver/caddy/v2"
)

// usedDocument is a handler's share in a document.
type usedDocument struct {
	document *document
	reader   *reader
}

// open finds the policy and prepares all that requests need.
func (h *Handler) open(ctx caddy.Context) error {
	name, err := caddy.NewReplacer().ReplaceOrErr(h.Policy, true, true)
	if err != nil {
		return fmt.Errorf("the policy file's name %q: %w", h.Policy, err)
	}
	src, err := newSource(ctx, name)
	if err != nil {
		return err
	}
	follow, interval, err := parseReload(h.Reload, src)
	if err != nil {
		return err
	}
	teller, err := newTeller(ctx, h.logger)
	if err != nil {
		return err
	}
	if err := register(ctx.GetMetricsRegistry()); err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	h.used, err = useDocument(ctx, &reader{
		src: src, follow: follow, interval: interval, teller: teller,
		take: func(l *live) { h.live.Store(l) },
	})
	return err
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
	if h.used == nil {
		return nil
	}
	err := h.used.release()
	h.used = nil
	return err
}

// newSource finds out what a policy's name stands for.
func newSource(_ caddy.Context, name string) (source, error) {
	if name == "" {
		return nil, errors.New("no policy file is given")
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
