// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
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
	data, err := s.Load(ctx, s.key+draftSuffix)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && len(data) == 0:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading the draft of %s: %w", s.name(), err)
	}
	d := new(Draft)
	if err := json.Unmarshal(data, d); err != nil {
		return nil, fmt.Errorf("the draft of %s is damaged: %w", s.name(), err)
	}
	return d, nil
}

// Draft returns the draft of the policy, nil if there is none.
func (d *Document) Draft(ctx context.Context) (*Draft, error) {
	u, _ := d.active()
	if u == nil || u.src.stored == nil {
		return nil, nil
	}
	return soon(ctx, "reading the draft", u.src.stored.draft)
}

// SaveDraft saves a draft, or deletes it for nil, if the draft in the storage is still the one whose ID is replaces.
// Its errors are ErrOvertaken, errReadOnly and, for everything else, ErrStorage.
func (d *Document) SaveDraft(ctx context.Context, replaces string, draft *Draft) error {
	u, _ := d.active()
	if u == nil || u.src.stored == nil {
		return errReadOnly
	}
	s := u.src.stored
	err := s.write(ctx, "saving the draft", func(ctx context.Context) error {
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
		data, err := json.Marshal(draft)
		if err != nil {
			return err
		}
		return s.Store(ctx, s.key+draftSuffix, data)
	})
	if errors.Is(err, ErrLockStays) {
		return nil // it is saved
	}
	return err
}
