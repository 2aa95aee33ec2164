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

// Signed holds who published a version or saved a draft, and why. The zero value means that both are unknown.
type Signed struct {
	By       string   `json:"by,omitempty"`
	Note     string   `json:"note,omitempty"`
	Approved []string `json:"approved,omitempty"` // names of the people who approved it
}

// Published is a version of a policy in a storage, with its text.
type Published struct {
	SHA256 string    `json:"sha256"`
	Number int       `json:"number"` // 1, 2, 3, …
	Time   time.Time `json:"time"`
	Signed
	Served   time.Time `json:"served,omitzero"`    // time when a server first served it, or zero if not known
	Found    bool      `json:"found,omitempty"`    // another program wrote it to the storage
	Undo     bool      `json:"undo,omitempty"`     // the version is an undo
	Accepted []string  `json:"accepted,omitempty"` // search engines whose losses were accepted
	Text     string    `json:"text"`
}

// Label returns the name that users see for the version, such as v3.
func (p *Published) Label() string { return fmt.Sprintf("v%d", p.Number) }

// History lists the texts published at a key of a storage and the texts they replaced, newest first.
type History []Published

// The history of a policy has its own storage key, which ends with historySuffix. The other constants limit the number
// of versions in the history and their total size.
const (
	historySuffix  = ".history"
	maxHistory     = 20
	maxHistorySize = 4 << 20
)

// Return describes whether servers have already served a text.
type Return int

const (
	NeverServed Return = iota // no server is known to have served the text
	Undo                      // the text was served directly before the present version
	Earlier                   // the text was served, but not directly before the present version
)

// top reports whether the newest version has the hash sum.
func (h History) top(sum string) bool { return len(h) > 0 && h[0].SHA256 == sum }

// Standing is the content of a policy's storage: its text and its history.
type Standing struct {
	History
	Text   string
	SHA256 string // SHA-256 of the text; "" if there is none
}

// Undo returns the version that an undo goes back to, or nil if none is known. If servers serve the text in the
// storage, this is the version that they served directly before this text. If they have not loaded that text, for
// example because it has an error, this is the version that they serve now.
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

// GoBack returns the version with a number or, for 0, the version for an undo. It returns an error for a version that
// no server is known to have served, because such a text is new to the servers.
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
		return nil, fmt.Errorf("v%d is already the version in the storage", number)
	case !s.served(v.SHA256):
		return nil, fmt.Errorf("v%d cannot be restored, because no server is known to have served it; save its text in a file, and publish that file", number)
	}
	return v, nil
}

// Version returns the version with a number, or nil if there is none.
func (h History) Version(number int) *Published {
	if i := slices.IndexFunc(h, func(p Published) bool { return p.Number == number }); i >= 0 {
		return &h[i]
	}
	return nil
}

// Returns describes whether publishing the text with the hash sum would be a return to a text that servers have served
// before. If the text is already in the storage, publishing it would not change anything, so the result is NeverServed.
func (s *Standing) Returns(sum string) Return {
	switch back := s.Undo(); {
	case sum == s.SHA256 || !s.served(sum):
		return NeverServed
	case back != nil && back.SHA256 == sum:
		return Undo
	}
	return Earlier
}

// returned reports whether the text in the storage is a return to a text that servers have served before. A server
// calls it before it loads the text. The result is Undo only if the newest version is marked as an undo;
// Document.returned also finds other undos in the server's own records.
func (s *Standing) returned() Return {
	switch {
	case !s.top(s.SHA256) || !s.History[1:].served(s.SHA256):
		return NeverServed
	case s.History[0].Undo:
		return Undo
	}
	return Earlier
}

// served reports whether a server is known to have served a version with the hash sum.
func (h History) served(sum string) bool {
	return slices.ContainsFunc(h, func(p Published) bool { return p.SHA256 == sum && !p.Served.IsZero() })
}

// standing reads the policy's storage.
func (s *storedPolicy) standing(ctx context.Context) (*Standing, error) {
	text, err := s.Load(ctx, s.key)
	if ignoreNotExist(err) != nil {
		return nil, fmt.Errorf("reading %s: %w", s.name(), err)
	}
	st := &Standing{Text: string(text)}
	if len(bytes.TrimSpace(text)) > 0 { // an empty text is the same as none
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

// StandingOf reads the text and history at a key of a storage.
func StandingOf(ctx context.Context, storage Storage, key string) (*Standing, error) {
	return (&storedPolicy{storage, key}).standing(ctx)
}

// history returns the versions of the policy, newest first. They include texts that were in the storage without being
// published.
func (s *storedPolicy) history(ctx context.Context) (History, error) {
	return loadBeside[History](ctx, s, historySuffix, "history")
}

// following returns a history in which p is the first entry. p gets the next number.
func following(history History, p Published) History {
	p.Number = 1
	if len(history) > 0 {
		p.Number += history[0].Number
	}
	return append(History{p}, history...)
}

// saveHistory saves the newest versions of a history, up to its limits.
func (s *storedPolicy) saveHistory(ctx context.Context, all History) error {
	size := 0
	for i := range all {
		all[i].Served = time.Time{} // stored under a separate key
		if size += len(all[i].Text); i > 1 && (i == maxHistory || size > maxHistorySize) {
			all = all[:i]
			break
		}
	}
	if err := s.storeBeside(ctx, historySuffix, all); err != nil {
		return fmt.Errorf("saving the previous version: %w", err)
	}
	return ctx.Err() // the storage may have ignored ctx and returned too late
}

// A servedMark records that a server loaded a text. Newest is the number of the newest version at that time. If the
// same text is published again later, as another version, the number shows that the server did not load this later
// version.
type servedMark struct {
	SHA256 string    `json:"sha256"`
	Newest int       `json:"newest"`
	Time   time.Time `json:"time"`
}

const (
	servedSuffix = ".served"
	maxServed    = 4 * maxHistory
)

// servedMarks returns the marks, oldest first. They have their own storage key. Servers write them without a lock,
// because if the storage failed while a server held a lock, the next publication would have to wait. Damaged marks must
// not block a publication either, so servedMarks then returns no marks. As a result, an undo is not possible until
// servers have loaded other versions.
func (s *storedPolicy) servedMarks(ctx context.Context) ([]servedMark, error) {
	marks, err := loadBeside[[]servedMark](ctx, s, servedSuffix, "list of served versions")
	if errors.Is(err, errDamaged) {
		return nil, nil
	}
	return marks, err
}

// markServed records in the storage that a server serves the text with the hash sum.
func (s *storedPolicy) markServed(ctx context.Context, sum string) error {
	_, err := within(ctx, readTimeout, "recording which version is served", func(ctx context.Context) (any, error) {
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

// servedAt returns when a server first loaded the version, or the zero time if no server is known to have loaded it.
func (p *Published) servedAt(marks []servedMark) time.Time {
	for _, m := range marks {
		if m.SHA256 == p.SHA256 && (p.Found || m.Newest >= p.Number) {
			return m.Time
		}
	}
	return time.Time{}
}

// Standing reads the storage of the policy. If the source is not a storage, it returns an empty Standing, because other
// sources have no history.
func (d *Document) Standing(ctx context.Context) (*Standing, error) {
	s := d.stored()
	if s == nil {
		return new(Standing), nil
	}
	return within(ctx, readTimeout, "reading the history", s.standing)
}
