// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/activity/replay"
	"github.com/robotspolicy/caddy-robots-policy/claim"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/site"
	"github.com/robotspolicy/caddy-robots-policy/site/compare"
)

// Errors of publishing.
var (
	// errReadOnly means that the source is not a storage.
	errReadOnly = errors.New("only a policy in Caddy's storage can be published by this server; write the source of the policy as storage:KEY in the Caddyfile")
	// ErrOvertaken means that the storage no longer has the version that a Change or a draft should replace.
	ErrOvertaken = errors.New("another version was published in the meantime")
	// ErrStorage means that the storage failed during reading or writing.
	ErrStorage = errors.New("storage error")
	// ErrLockStays means that the version was published, but the lock in the storage could not be released.
	ErrLockStays = errors.New("the version was published, but the lock in Caddy's storage could not be released, so publishing the next version may have to wait")
)

// Change is a text that should replace the text in a storage.
type Change struct {
	Replaces string // SHA-256 of the version to replace, or "" if there is none
	Text     string
	Accept   []string // search engines whose losses are accepted if an earlier text is restored
	Draft    string   // ID of the draft with this text, or "" if there is none
	Signed

	known   string // SHA-256 of a rejected text in the storage, or ""; Text may replace the rejected text, too
	returns Return
}

// LossError means that an earlier version is not published, because search engines would lose something and this loss
// was not accepted.
type LossError struct {
	Claim claim.Claim
	Names []string // names of search engines and gaps, in the form for the flag --accept-loss
}

func (e *LossError) Error() string {
	return "this version cannot be restored: " + e.Claim.Err().Error() + "; accept it by name: " + strings.Join(e.Names, ",")
}

// NotAccepted returns a LossError if search engines lose something when the policy before is replaced with now. It
// ignores the losses of the search engines in accepted.
func NotAccepted(before, now *site.Site, below site.Below, accepted []string) error {
	losses := compare.Sites(before, now, compare.Options{Below: below}).Losses
	c := replay.KeepsBy(losses, before == nil, accepted)
	if c.Holds() {
		return nil
	}
	return &LossError{c, losses.Names()}
}

// PublishTo writes c.Text to a key of a storage. The key must have the text with the hash c.Replaces; if it has another
// text, PublishTo returns ErrOvertaken. The caller must have checked c.Text. PublishTo gives up after a minute, plus
// some seconds for releasing the lock. If it cannot release the lock after writing, it returns ErrLockStays. For all
// other problems, it returns ErrStorage.
func PublishTo(ctx context.Context, storage Storage, key string, c Change) error {
	s := &storedPolicy{storage, key}
	return s.publish(ctx, publishToTimeout, func(st *Standing) (Change, error) {
		c.returns = st.Returns(sumOf([]byte(c.Text)))
		return c, nil
	})
}

// publish acquires a lock, and passes the present text and history to the function change. It then writes the text in
// the Change that this function returns, and releases the lock.
func (s *storedPolicy) publish(ctx context.Context, limit time.Duration, change func(*Standing) (Change, error)) error {
	return s.locked(ctx, limit, "publishing", func(ctx context.Context) error {
		st, err := s.standing(ctx)
		if err != nil {
			return err
		}
		c, err := change(st)
		if err != nil {
			return err
		}
		return s.replace(ctx, st, &c)
	})
}

// replace does the work of publish while the lock is held.
func (s *storedPolicy) replace(ctx context.Context, before *Standing, c *Change) error {
	if before.SHA256 != c.Replaces && (c.known == "" || before.SHA256 != c.known) {
		return ErrOvertaken
	}
	now := time.Now().UTC()
	history := before.History
	if before.SHA256 != "" && !history.top(before.SHA256) {
		history = following(history, Published{SHA256: before.SHA256, Time: now, Found: true, Text: before.Text})
	}
	next := Published{SHA256: sumOf([]byte(c.Text)), Time: now, Signed: c.Signed, Undo: c.returns == Undo, Text: c.Text}
	if c.returns == Earlier {
		next.Accepted = c.Accept
	}
	history = following(history, next)
	if err := s.saveHistory(ctx, history); err != nil {
		return err
	}
	if err := s.Store(ctx, s.key, []byte(c.Text)); err != nil {
		return errors.Join(err, s.withdraw(ctx, c.Text, history[1:]))
	}
	if got, err := s.Load(ctx, s.key); err != nil || string(got) != c.Text {
		return fmt.Errorf("the storage does not return what was published: %w", errors.Join(err, fs.ErrInvalid))
	}
	s.dropDraft(ctx, c)
	return nil
}

// dropDraft deletes the saved draft after its text was published with c. An error does not matter, because a draft is
// not shown if its text equals the policy's text.
func (s *storedPolicy) dropDraft(ctx context.Context, c *Change) {
	if draft, err := s.draft(ctx); err == nil && draft != nil && (draft.Text == c.Text || draft.ID() == c.Draft) {
		_ = s.Delete(ctx, s.key+draftSuffix)
	}
}

// withdraw is called after writing text to the storage has failed. The saved history already lists text as the newest
// version, so withdraw replaces it with history, the earlier list. If the storage has the text nevertheless, or does
// not answer, withdraw does not change the history. It uses a new context, because the context of the write may have
// ended.
func (s *storedPolicy) withdraw(ctx context.Context, text string, history []Published) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unlockTimeout)
	defer cancel()
	got, err := s.Load(ctx, s.key)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !bytes.Equal(got, []byte(text)) {
		return s.saveHistory(ctx, history)
	}
	return nil
}

var errUnused = errors.New("no site uses this policy any more")

// stored returns the policy's place in the storage of a running configuration, or nil if the source is not a
// storage.
func (d *Document) stored() *storedPolicy {
	if u, _ := d.active(); u != nil {
		return u.src.stored
	}
	return nil
}

// Writable reports whether texts can be published to the document's source.
func (d *Document) Writable() bool { return d.stored() != nil }

// Publish writes c.Text to the policy's storage and serves it. The storage must contain the text with the hash
// c.Replaces, or a text that this server has rejected. If c.Text is not an undo, Options.Guard must allow it. If c.Text
// is an earlier version, search engines must not lose anything, except for the ones in c.Accept. The caller must have
// run the policy's tests.
func (d *Document) Publish(ctx context.Context, c Change) (Outcome, error) {
	u, _ := d.active()
	if u == nil {
		return Outcome{}, errUnused
	}
	if u.src.stored == nil {
		return Outcome{}, errReadOnly
	}
	d.markServed(ctx, u.Options, u.src) // records that the text to replace was served
	if err := d.loading.Acquire(ctx, 1); err != nil {
		return Outcome{}, err
	}
	out, err := d.publishText(ctx, u, c)
	if err != nil {
		return Outcome{}, err
	}
	u.report(u.src, out)
	d.markServed(ctx, u.Options, u.src)
	d.alert(u.Options, u.src, out)
	return out, nil
}

// publishText does the work of Publish. The caller must hold d.loading; publishText releases it.
func (d *Document) publishText(ctx context.Context, u *user, c Change) (Outcome, error) {
	defer d.loading.Release(1)
	st, err := within(ctx, readTimeout, "the storage", u.src.stored.standing)
	if err != nil {
		return Outcome{}, fmt.Errorf("%w: publishing: %w", ErrStorage, err)
	}
	found := content{data: []byte(c.Text)}
	before := d.Current()
	c.returns, c.known = st.Returns(sumOf(found.data)), d.rejected
	next, err := compileReturned(u.src.name, found.data, c.returns)
	if err != nil {
		return Outcome{}, err
	}
	if before != nil && before.SHA256 != next.SHA256 && c.returns != Undo {
		if c.returns == Earlier {
			err = NotAccepted(before.Site, next.Site, d.below(u.Options), c.Accept)
		} else {
			c.Accept = nil
		}
		if err == nil {
			err = d.allows(u.Options, u.src, before, next, c.Accept)
		}
		if err != nil {
			return Outcome{}, err
		}
	}
	err = u.src.stored.publish(ctx, publishTimeout, func(*Standing) (Change, error) { return c, nil })
	if errors.Is(err, ErrLockStays) {
		u.Logger.Warn("a published policy is still locked in the storage", zap.String("policy", u.src.name), zap.Error(err))
	} else if err != nil {
		return Outcome{}, err
	}
	out := d.adopt(u.Options, u.src, found, next, true)
	out.undo = c.returns == Undo
	return out, nil
}

// compileReturned compiles a text that may have been served before. For an undo, a failed test is only a warning,
// because the tests passed when the text was first served. They may fail now because of a newer catalog.
func compileReturned(name string, data []byte, r Return) (*Snapshot, error) {
	return compile(name, data, policyfile.Options{Accepted: r == Undo})
}
