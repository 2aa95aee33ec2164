// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"
)

// Draft is a text of a policy that is not published yet. Each policy in a storage has one, for
// all people who work on it.
type Draft struct {
	Base string    `json:"base"` // the SHA-256 of the version that it changes, or "" if there is none
	Text string    `json:"text"`
	Time time.Time `json:"time"` // when it was saved
	Signed
}

const draftSuffix = ".draft"

// ID tells drafts, and who approved them, apart. It is "" for nil.
func (d *Draft) ID() string {
	if d == nil {
		return ""
	}
	data, err := json.Marshal(d)
	if err != nil {
		panic(err) // it has nothing that JSON cannot have
	}
	return sumOf(data)
}

func (s *storedPolicy) draft(ctx context.Context) (*Draft, error) {
	return loadBeside[*Draft](ctx, s, draftSuffix, "draft")
}

// Draft returns the draft of the policy, nil if there is none.
func (d *Document) Draft(ctx context.Context) (*Draft, error) {
	s := d.stored()
	if s == nil {
		return nil, nil
	}
	return within(ctx, readTimeout, "reading the draft", s.draft)
}

// SaveDraft saves a draft, or deletes it for nil, if the draft in the storage is still the one whose ID is replaces.
// Its errors are ErrOvertaken, errReadOnly and, for everything else, ErrStorage.
func (d *Document) SaveDraft(ctx context.Context, replaces string, draft *Draft) error {
	s := d.stored()
	if s == nil {
		return errReadOnly
	}
	return s.saveDraft(ctx, publishTimeout, func(before *Draft) (*Draft, error) {
		if before.ID() != replaces {
			return nil, ErrOvertaken
		}
		return draft, nil
	})
}

// ErrOtherDraft says that another draft is saved already.
var ErrOtherDraft = errors.New("the policy has another draft: publish or discard it in the console first")

// Propose saves a draft for others to approve, unless another one is saved. If one with the same text is, its author
// is among those who approve it.
func (d *Document) Propose(ctx context.Context, draft *Draft) error {
	s := d.stored()
	if s == nil {
		return errReadOnly
	}
	return s.saveDraft(ctx, publishTimeout, draft.partAfter)
}

// ProposeTo is Propose for a key of a storage.
func ProposeTo(ctx context.Context, storage Storage, key string, draft *Draft) error {
	return (&storedPolicy{storage, key}).saveDraft(ctx, publishToTimeout, draft.partAfter)
}

// partAfter returns the part of a draft to store after before, which is stored already.
func (d *Draft) partAfter(before *Draft) (*Draft, error) {
	switch {
	case before == nil:
		return d, nil
	case before.Text != d.Text || before.Base != d.Base:
		return nil, ErrOtherDraft
	case before.By == d.By || slices.Contains(before.Approved, d.By):
		return before, nil
	}
	approved := *before
	approved.Approved = append(slices.Clone(before.Approved), d.By)
	return &approved, nil
}

// saveDraft saves the draft that next returns for the present one, or deletes it if next returns nil.
func (s *storedPolicy) saveDraft(ctx context.Context, limit time.Duration, next func(before *Draft) (*Draft, error)) error {
	err := s.locked(ctx, limit, "saving the draft", func(ctx context.Context) error {
		before, err := s.draft(ctx)
		if err != nil {
			return err
		}
		draft, err := next(before)
		switch {
		case err != nil:
			return err
		case draft == nil && before == nil:
			return nil
		case draft == nil:
			return s.Delete(ctx, s.key+draftSuffix)
		}
		return s.storeBeside(ctx, draftSuffix, draft)
	})
	if errors.Is(err, ErrLockStays) {
		return nil // it is saved
	}
	return err
}
