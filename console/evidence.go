// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/semaphore"

	"github.com/robotspolicy/caddy-robots-policy/activity/evidence"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/recorders"
)

// Evidence can be hundreds of megabytes, and a reader slow, so it has places of its own.
var evidenceReaders = semaphore.NewWeighted(4)

const (
	evidenceTimeout = 10 * time.Minute
	stalledTimeout  = 30 * time.Second // for a reader that takes nothing
)

// evidenceLines sends the events about one crawler, and those about the policy. If it fails
// after it has begun, the last line says so.
func (s *server) evidenceLines(w http.ResponseWriter, r *http.Request) {
	if !evidenceReaders.TryAcquire(1) {
		w.Header().Set("Retry-After", "60")
		http.Error(w, "Evidence is being downloaded by several readers. Try again in a minute.", http.StatusServiceUnavailable)
		return
	}
	defer evidenceReaders.Release(1)
	ctx, cancel := context.WithTimeout(r.Context(), evidenceTimeout)
	defer cancel()
	v, err := s.view(r.WithContext(ctx))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	log := recorders.RunningEvidence()
	name := v.Param("name")
	switch {
	case log == nil:
		s.fail(w, r, failed(http.StatusNotFound, "this server keeps no evidence: add the option evidence to robots_policy"))
		return
	case name == "":
		s.fail(w, r, failed(http.StatusBadRequest, "name a crawler"))
		return
	}
	w.Header().Set("Content-Type", "application/jsonl; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="evidence.jsonl"`)
	if r.Method == http.MethodHead {
		return
	}
	sent := 0
	out := bufio.NewWriterSize(impatient{w}, 64<<10)
	err = evidence.Read(log.Directory, func(_ string, e *evidence.Event, hash string) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		ofPolicy := slices.Contains([]string{evidence.TypePublished, evidence.TypeServed, evidence.TypeEnded, evidence.TypeSigned}, e.Type)
		if e.Crawler != name && !ofPolicy || e.Host != "" && !v.allowed(e.Host) || e.Host == "" && v.may != nil {
			return nil
		}
		sent++
		return json.NewEncoder(out).Encode(struct {
			*evidence.Event
			Hash string `json:"hash"`
		}{e, hash})
	})
	if err != nil && sent == 0 {
		s.fail(w, r, err)
		return
	}
	if err != nil {
		s.logger.Error("a download of evidence is not whole", zap.Error(err))
		_ = json.NewEncoder(out).Encode(map[string]string{"error": "this file is not whole, download it again: " + err.Error()})
	}
	_ = out.Flush() // the reader has gone
}

// impatient ends a response whose reader does not read for a while.
type impatient struct{ http.ResponseWriter }

func (w impatient) Write(b []byte) (int, error) {
	// Without deadlines, as in HTTP/2 behind another server, the timeout of the download holds.
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(stalledTimeout))
	return w.ResponseWriter.Write(b)
}
