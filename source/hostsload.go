// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"
)

// maxLoadWait is how long a file waits for a place in the fast lane.
const maxLoadWait = time.Second

// load loads a file that was added.
func (h *Hosts) load(f *hostFile) {
	n := h.notifier()
	f.err = errors.New("the policy of this host could not be loaded")
	defer func() {
		if f.err != nil { // also after a panic: the next request tries again
			h.mu.Lock()
			h.remove(f)
			h.mu.Unlock()
		}
		close(f.ready)
	}()
	defer n.recoverPanic()
	ctx, cancel := context.WithTimeout(context.Background(), maxLoadWait)
	defer cancel()
	p, err := h.lanes.enter(ctx)
	if err != nil {
		f.err = err
		return
	}
	defer p.leave()
	h.open(f, n)
}

// open opens the document of a file.
func (h *Hosts) open(f *hostFile, n *notifier) {
	src := &hostFileSource{fileSource: fileSource{path: h.template.Dir() + f.name}, template: h.template, file: f.name}
	found, err := src.read(context.Background(), nil)
	if isMissing(err) {
		f.err, f.missing = nil, true
		h.miss(f)
		return
	}
	d := newDocument(src.key(), src.path)
	d.perHost, d.checked = true, time.Now()
	var s *Snapshot
	if err == nil {
		s, err = Compile(src.name(), found.data)
	}
	if err != nil {
		if s = h.closed(); s == nil {
			return
		}
		d.setError(err)
		d.current = s
		if isDirError(err) {
			h.setDirError(n, err)
		} else {
			n.logger.Error("the policy of a host has an error; the host is closed to crawlers until it is fixed",
				zap.String("policy", src.name()), zap.Error(err))
		}
	} else {
		s.PerHost = true
		d.validator = found.validator
		d.setCurrent(s)
	}
	r := newSubscriber(src, n)
	r.watch, r.interval, r.onChange = true, fileInterval, f.snapshot.Store
	d.subscribers = []*subscriber{r}
	r.set(s)
	f.document, f.err = d, nil
}
