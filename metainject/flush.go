// SPDX-License-Identifier: Apache-2.0

package metainject

import "net/http"

type errorFlusher interface{ FlushError() error }

// FlushError sends what can be sent. While the head is being looked for that is
// nothing, except after the head's end tag: elements that could still belong to the
// head there are not waited for.
func (rw *ResponseWriter) FlushError() error {
	if rw.phase == phasePass {
		return rw.flushBelow()
	}
	if rw.phase == phaseOpen {
		rw.WriteHeader(http.StatusOK)
	}
	if rw.phase == phaseHeld {
		if err := rw.flushHeld(); err != nil || rw.phase == phaseHeld {
			return err
		}
	}
	if rw.phase == phaseCoded {
		if err := rw.page.editor.Flush(); err != nil {
			return err
		}
	}
	return rw.flushBelow()
}

// flushBelow is http.ResponseController's Flush of the underlying writer, which is
// looked up only once: streams flush with every write.
func (rw *ResponseWriter) flushBelow() error {
	if rw.below == nil {
		rw.below = flusherOf(rw.w)
	}
	return rw.below.FlushError()
}

func flusherOf(w http.ResponseWriter) errorFlusher {
	for below := w; ; {
		switch f := below.(type) {
		case errorFlusher:
			return f
		case http.Flusher:
			return withoutError{f}
		case interface{ Unwrap() http.ResponseWriter }:
			below = f.Unwrap()
		default:
			return unflushable{w}
		}
	}
}

type withoutError struct{ http.Flusher }

func (f withoutError) FlushError() error { f.Flush(); return nil }

// unflushable returns the error that http.ResponseController has for it.
type unflushable struct{ w http.ResponseWriter }

func (u unflushable) FlushError() error { return http.NewResponseController(u.w).Flush() }

// Flush is FlushError for handlers that ask for an http.Flusher.
func (rw *ResponseWriter) Flush() { _ = rw.FlushError() }
