// SPDX-License-Identifier: Apache-2.0

package console

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"
	"golang.org/x/sync/semaphore"
)

// streams bounds the readers that are sent live updates.
var streams = semaphore.NewWeighted(256)

const (
	streamFor   = 2 * time.Minute // then the browser asks again
	streamEvery = 3 * time.Second
)

// update is a server-sent event: the values that a page compares with those that it shows.
type update struct {
	Requests int64  `json:"requests"` // today
	Policy   string `json:"policy"`   // the version in force
	Alerts   int    `json:"alerts"`
}

// events streams what changes until the configuration or the request ends.
func (s *server) events(w http.ResponseWriter, r *http.Request) {
	if !streams.TryAcquire(1) {
		w.Header().Set("Retry-After", "60")
		http.Error(w, "Too many pages are open.", http.StatusServiceUnavailable)
		return
	}
	defer streams.Release(1)
	out := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, "retry: 5000\n\n")
	if out.Flush() != nil || r.Method == http.MethodHead {
		return
	}
	end := time.After(streamFor)
	tick := time.NewTicker(streamEvery)
	defer tick.Stop()
	last := ""
	for {
		v, err := s.view(r)
		if err != nil {
			return
		}
		b, err := json.Marshal(v.update())
		if err != nil {
			return
		}
		if text := string(b); text != last {
			last = text
			if _, err := fmt.Fprintf(w, "data: %s\n\n", text); err != nil || out.Flush() != nil {
				return
			}
		}
		select {
		case <-tick.C:
			if caddy.Exiting() {
				return // the server waits for this response before it stops
			}
		case <-end:
			return
		case <-r.Context().Done():
			return
		case <-s.done:
			return
		}
	}
}

func (v *view) update() (u update) {
	if v.Running != nil {
		u.Policy = v.Running.Version()
	}
	if v.store == nil {
		return u
	}
	u.Alerts, _ = v.count(func(*notice) bool { return true })
	q := v.query()
	q.From = v.Now.Truncate(24 * time.Hour)
	q.To = q.From.AddDate(0, 0, 1)
	if rows, err := v.totals(q); err == nil && len(rows) > 0 {
		u.Requests = rows[0].Requests
	}
	return u
}
