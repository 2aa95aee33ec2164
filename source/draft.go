// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"
)

// Draft is an unpublished text. A policy in a storage has at most one draft, which all editors share.
type Draft struct {
	Base string    `json:"base"` // the SHA-256 of the version that the draft changes, or "" if there is none
	Text string    `json:"text"`
	Time time.Time `json:"time"` // time when the draft was saved
	Signed
}

const draftSuffix = ".draft"

// ID identifies the draft together with its approvals. It returns "" for nil.
func (d *Draft) ID() string {
	if d == nil {
		return ""
	}
	data, err := json.Marshal(d)
	if err != nil {
		panic(err) // cannot happen: JSON can represent all fields
	}
	return sumOf(data)
}

func (s *storedPolicy) draft(ctx context.Context) (*Draft, error) {
	return loadBeside[*Draft](ctx, s, draftSuffix, "draft")
}

// Draft returns the draft of the policy, or nil if there is none.
func (d *Document) Draft(ctx context.Context) (*Draft, error) {
	s := d.stored()
	if s == nil {
		return nil, nil
	}
	return within(ctx, readTimeout, "reading the draft", s.draft)
}

// SaveDraft saves a draft. If draft is nil, it deletes the saved draft. replaces must be the ID of the draft in the
// storage; otherwise SaveDraft returns ErrOvertaken. It returns errReadOnly if the source is not a storage, and
// ErrStorage for all other problems.
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

// ErrOtherDraft means that a draft with another text, or for another version, is already saved.
var ErrOtherDraft = errors.New("the policy has another draft: publish or discard it in the console first")

// Propose saves a draft that other people should approve. If a draft with the same text and base is already saved,
// Propose adds the author of draft to the approvers of the saved draft. If the saved draft has another text or base,
// Propose returns ErrOtherDraft.
func (d *Document) Propose(ctx context.Context, draft *Draft) error {
	s := d.stored()
	if s == nil {
		return errReadOnly
	}
	return s.saveDraft(ctx, publishTimeout, draft.partAfter)
}

// ProposeTo does the same as Propose for a key of a storage.
func ProposeTo(ctx context.Context, storage Storage, key string, draft *Draft) error {
	return (&storedPolicy{storage, key}).saveDraft(ctx, publishToTimeout, draft.partAfter)
}

// partAfter returns the draft to store when d is proposed. The parameter before is the stored draft, or nil. If before
// is nil, partAfter returns d. If before has the same text and base as d, it returns before, with the author of d as an
// additional approver. If they differ, it returns ErrOtherDraft.
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

// saveDraft replaces the draft in the storage with the draft that the function next returns. It passes the present
// draft, or nil, to next. If next returns nil, saveDraft deletes the present draft.
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
		return nil // the draft is already saved
	}
	return err
}
