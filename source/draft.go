// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

// Draft is a text of a policy that is not published yet. There is one beside each policy in
// a storage, for everybody who works on it.
type Draft struct {
	Base string    `json:"base"` // the SHA-256 of the version that it changes, "" for none
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
	err := s.locked(ctx, publishTimeout, "saving the draft", func(ctx context.Context) error {
		before, err := s.draft(ctx)
		switch {
		case err != nil:
			return err
		case before.ID() != replaces:
			return ErrOvertaken
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
