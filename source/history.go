// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
)

// Signed says who published a version or saved a draft, and why. The zero value is not known.
type Signed struct {
	By       string   `json:"by,omitempty"`
	Note     string   `json:"note,omitempty"`
	Approved []string `json:"approved,omitempty"` // the names of those who approved it
}

// Published is a version of a policy in a storage, and its text.
type Published struct {
	SHA256 string    `json:"sha256"`
	Number int       `json:"number"` // 1, 2, 3, …
	Time   time.Time `json:"time"`
	Signed
	Served   time.Time `json:"served,omitzero"`    // when a server first served it; zero: no server is known to have
	Found    bool      `json:"found,omitempty"`    // it was put there by other means
	Undo     bool      `json:"undo,omitempty"`     // it is the text that was served directly before
	Accepted []string  `json:"accepted,omitempty"` // the search engines whose losses were accepted with it
	Text     string    `json:"text"`
}

// Label is the name that people use for a version: v3.
func (p *Published) Label() string { return fmt.Sprintf("v%d", p.Number) }

// History lists the texts published at a key of a storage and the texts they replaced, newest first.
type History []Published

// The bounds of the history of a policy in the storage.
const (
	historySuffix  = ".history"
	maxHistory     = 20
	maxHistorySize = 4 << 20
)

// Return says how a text relates to what servers have served.
type Return int

const (
	NeverServed Return = iota // no server is known to have served it
	Undo                      // it was served directly before the present version
	Earlier                   // it was served before that
)

// top reports whether the newest version has a hash.
func (h History) top(sum string) bool { return len(h) > 0 && h[0].SHA256 == sum }

// Standing is the state of a policy's storage: its text and its history.
type Standing struct {
	History
	Text   string
	SHA256 string // of the text; "" if there is none
}

// Undo returns the version that servers served directly before the text of the storage: if they serve that one, the
// one before it; if they don't, the one that they serve. It is nil if none is known.
func (s *Standing) Undo() *Published {
	for i := range s.History {
		if v := &s.History[i]; v.SHA256 != s.SHA256 && !v.Served.IsZero() {
			return v
		}
	}
	return nil
}

// UndoesUndo reports whether an undo would return to the text that was undone last.
func (s *Standing) UndoesUndo() bool {
	back := s.Undo()
	return back != nil && len(s.History) > 1 && s.top(s.SHA256) && s.History[0].Undo && s.History[1].SHA256 == back.SHA256
}

// GoBack returns the version to go back to: the one with a number or, for 0, the one for an undo. A version that no
// server is known to have served is an error, because it is a new text to them.
func (s *Standing) GoBack(number int) (*Published, error) {
	if number == 0 {
		if back := s.Undo(); back != nil {
			return back, nil
		}
		return nil, errors.New("there is nothing to undo: no server is known to have served another version earlier")
	}
	v := s.Version(number)
	switch {
	case v == nil:
		var known []string
		for i := range s.History {
			known = append(known, s.History[i].Label())
		}
		return nil, fmt.Errorf("there is no version v%d: the history has %s", number, cmp.Or(english.List(known, "and"), "none"))
	case v.SHA256 == s.SHA256:
		return nil, fmt.Errorf("v%d is what the storage holds now", number)
	case !s.served(v.SHA256):
		return nil, fmt.Errorf("no server is known to have served v%d, so it is a new text: publish it as a file", number)
	}
	return v, nil
}

// Version returns the version with a number, nil if there is none.
func (h History) Version(number int) *Published {
	if i := slices.IndexFunc(h, func(p Published) bool { return p.Number == number }); i >= 0 {
		return &h[i]
	}
	return nil
}

// Returns says how a text, whose hash is given, relates to what servers have served.
func (s *Standing) Returns(sum string) Return {
	switch back := s.Undo(); {
	case sum == s.SHA256 || !s.served(sum):
		return NeverServed
	case back != nil && back.SHA256 == sum:
		return Undo
	}
	return Earlier
}

// returned says how the storage's text, which a server is about to load, relates to texts that servers served
// before. A text that is not marked as an undo may still be one for this server.
func (s *Standing) returned() Return {
	switch {
	case !s.top(s.SHA256) || !s.History[1:].served(s.SHA256):
		return NeverServed
	case s.History[0].Undo:
		return Undo
	}
	return Earlier
}

// served reports whether one of the versions is known to have been served, with a text of a hash.
func (h History) served(sum string) bool {
	return slices.ContainsFunc(h, func(p Published) bool { return p.SHA256 == sum && !p.Served.IsZero() })
}

// standing reads what the storage holds.
func (s *storedPolicy) standing(ctx context.Context) (*Standing, error) {
	text, err := s.Load(ctx, s.key)
	if ignoreNotExist(err) != nil {
		return nil, fmt.Errorf("reading %s: %w", s.name(), err)
	}
	st := &Standing{Text: string(text)}
	if len(bytes.TrimSpace(text)) > 0 { // else it is as good as nothing
		st.SHA256 = sumOf(text)
	}
	var marks []servedMark
	if st.History, err = s.history(ctx); err == nil {
		marks, err = s.servedMarks(ctx)
	}
	for i := range st.History {
		st.History[i].Served = st.History[i].servedAt(marks)
	}
	return st, err
}

// StandingOf reads what a storage holds at a key.
func StandingOf(ctx context.Context, storage Storage, key string) (*Standing, error) {
	return (&storedPolicy{storage, key}).standing(ctx)
}

// history returns what was published and what that replaced, newest first.
func (s *storedPolicy) history(ctx context.Context) (History, error) {
	return loadBeside[History](ctx, s, historySuffix, "history")
}

// following numbers a version, and puts it before the versions of a history.
func following(history History, p Published) History {
	p.Number = 1
	if len(history) > 0 {
		p.Number += history[0].Number
	}
	return append(History{p}, history...)
}

// saveHistory writes the newest versions of a history, as many as its bounds allow.
func (s *storedPolicy) saveHistory(ctx context.Context, all History) error {
	size := 0
	for i := range all {
		all[i].Served = time.Time{} // it has a key of its own
		if size += len(all[i].Text); i > 1 && (i == maxHistory || size > maxHistorySize) {
			all = all[:i]
			break
		}
	}
	if err := s.storeBeside(ctx, historySuffix, all); err != nil {
		return fmt.Errorf("saving the previous version: %w", err)
	}
	return ctx.Err() // a storage that ignored it may have returned too late to go on
}

// A servedMark notes that a server loaded a text, and which version was the newest then. An equal text that is published
// later is another version, and a server may have rejected it.
type servedMark struct {
	SHA256 string    `json:"sha256"`
	Newest int       `json:"newest"`
	Time   time.Time `json:"time"`
}

const (
	servedSuffix = ".served"
	maxServed    = 4 * maxHistory
)

// servedMarks returns the marks, oldest first. They are stored under a separate key, and written without
// a lock. If the storage failed while a server held a lock, the lock would stop the next publication. For the same
// reason, damaged marks are ignored: then nothing can be undone until servers load other versions.
func (s *storedPolicy) servedMarks(ctx context.Context) ([]servedMark, error) {
	marks, err := loadBeside[[]servedMark](ctx, s, servedSuffix, "list of served versions")
	if errors.Is(err, errDamaged) {
		return nil, nil
	}
	return marks, err
}

// markServed notes next to the policy that a server serves a text.
func (s *storedPolicy) markServed(ctx context.Context, sum string) error {
	_, err := within(ctx, readTimeout, "noting which version is served", func(ctx context.Context) (any, error) {
		history, err := s.history(ctx)
		if err != nil {
			return nil, err
		}
		marks, err := s.servedMarks(ctx)
		if err != nil {
			return nil, err
		}
		mark := servedMark{SHA256: sum, Time: time.Now().UTC()}
		if len(history) > 0 {
			mark.Newest = history[0].Number
		}
		i := slices.IndexFunc(history, func(p Published) bool { return p.SHA256 == sum })
		if i >= 0 && !history[i].servedAt(marks).IsZero() || i < 0 && slices.ContainsFunc(marks, func(m servedMark) bool { return m.SHA256 == sum }) {
			return nil, nil
		}
		marks = append(marks, mark)
		return nil, s.storeBeside(ctx, servedSuffix, marks[max(0, len(marks)-maxServed):])
	})
	return err
}

// servedAt returns when a server first loaded a version, the zero time if none has.
func (p *Published) servedAt(marks []servedMark) time.Time {
	for _, m := range marks {
		if m.SHA256 == p.SHA256 && (p.Found || m.Newest >= p.Number) {
			return m.Time
		}
	}
	return time.Time{}
}

// Standing reads what the storage of the policy holds. Another source than a storage has no history.
func (d *Document) Standing(ctx context.Context) (*Standing, error) {
	s := d.stored()
	if s == nil {
		return new(Standing), nil
	}
	return within(ctx, readTimeout, "reading the history", s.standing)
}

// History lists what was published to the storage of the policy and what that replaced, newest first.
func (d *Document) History(ctx context.Context) (History, error) {
	st, err := d.Standing(ctx)
	if err != nil {
		return nil, err
	}
	return st.History, nil
}
