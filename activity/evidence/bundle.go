// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/robotspolicy/caddy-robots-policy/claim"
)

// Bundle copies a log. It calls the function create to open each file of the copy. For each day, it copies the lines,
// the signature and the time stamps. If a server is writing to the log, the copy of the current day ends with the last
// signed line. So the copy can be verified like the log.
func Bundle(dir string, create func(name string) (io.Writer, error)) error {
	all, err := days(dir)
	if err != nil {
		return err
	}
	for _, day := range all {
		if err := bundleDay(dir, fileName(day), create); err != nil {
			return err
		}
	}
	return nil
}

func bundleDay(dir, name string, create func(name string) (io.Writer, error)) error {
	read := func(suffix string) ([]byte, error) {
		b, err := os.ReadFile(filepath.Join(dir, name+suffix))
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return b, err
	}
	signature, err := read(SignatureSuffix) // read first, so that the lines read below include the last signed one
	if err != nil {
		return err
	}
	stamps, err := read(TimestampSuffix)
	if err != nil {
		return err
	}
	var last Signature
	_ = json.Unmarshal(signature, &last) // a damaged signature is copied, too, so that Verify finds it
	out, err := create(name)
	if err != nil {
		return err
	}
	if _, err := eachLine(filepath.Join(dir, name), func(_ int, line []byte) error {
		var e Event
		if err := json.Unmarshal(line, &e); last.Seq > 0 && (err == nil && e.Seq > last.Seq) {
			return io.EOF
		}
		_, err := out.Write(append(bytes.Clone(line), '\n'))
		return err
	}); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for suffix, b := range map[string][]byte{SignatureSuffix: signature, TimestampSuffix: stamps} {
		if len(b) == 0 {
			continue
		}
		out, err := create(name + suffix)
		if err != nil {
			return err
		}
		if _, err := out.Write(b); err != nil {
			return err
		}
	}
	return nil
}

// ExcerptName is the file name of an excerpt. The excerpt's signature is in a second file next to it.
const ExcerptName = "excerpt.jsonl"

// Excerpt is the first line of an excerpt. It says which part of the log the excerpt contains.
type Excerpt struct {
	Crawler string   `json:"crawler"`
	Hosts   []string `json:"hosts"`
	Log     uint64   `json:"log"`   // number of the log's last line when the excerpt was made
	Lines   int      `json:"lines"` // number of lines in the excerpt
}

type excerptLine struct {
	Excerpt *Excerpt `json:"excerpt"`
}

// WriteExcerpt writes an excerpt of the log in dir. The first line is head; WriteExcerpt sets its fields Log and Lines.
// The other lines are the log's events that fits accepts, as unchanged lines of the log. WriteExcerpt returns
// the signature of the excerpt, or nil if key is nil.
func WriteExcerpt(w io.Writer, dir string, head Excerpt, key ed25519.PrivateKey, fits func(*Event) bool) (signature []byte, err error) {
	if err := readLines(dir, func(_ string, _ []byte, e *Event, _ string) error {
		if head.Log = e.Seq; fits(e) {
			head.Lines++
		}
		return nil
	}); err != nil {
		return nil, err
	}
	sum := sha256.New()
	out := io.MultiWriter(w, sum)
	if err := json.NewEncoder(out).Encode(excerptLine{&head}); err != nil {
		return nil, err
	}
	if err := readLines(dir, func(_ string, line []byte, e *Event, _ string) error {
		if e.Seq > head.Log || !fits(e) {
			return nil
		}
		_, err := out.Write(append(bytes.Clone(line), '\n'))
		return err
	}); err != nil || key == nil {
		return nil, err
	}
	s := Signature{File: ExcerptName, Seq: head.Log, Hash: hex.EncodeToString(sum.Sum(nil))}
	s.signBy(key)
	return json.Marshal(&s)
}

func (s *Signature) signBy(key ed25519.PrivateKey) {
	public, _ := key.Public().(ed25519.PublicKey)
	s.PublicKey = base64.StdEncoding.EncodeToString(public)
	s.Signature = base64.StdEncoding.EncodeToString(ed25519.Sign(key, s.SignedText()))
}

// excerptSubject holds the data for the claim that [VerifyExcerpt] returns.
type excerptSubject struct {
	Signature claim.Known[Signature] `gap:"unsigned" what:"the excerpt is not signed, so anyone could have made it" close:"ask the owner of the log for a signed excerpt, or for the log itself"`
	Excerpt   Excerpt
	Problem   string
}

var excerptIs = claim.Register("evidence-excerpt", func(s excerptSubject) claim.Finding {
	signature, _ := s.Signature.Get()
	what := fmt.Sprintf("This is an excerpt with %d of the %d lines of an evidence log, for the crawler %s", s.Excerpt.Lines, s.Excerpt.Log, s.Excerpt.Crawler)
	f := claim.Finding{
		Text:     what + ". The owner of the key " + Fingerprint(signature.PublicKey) + " made it. It does not show the other lines",
		Unjudged: what + ". It cannot be judged who made it",
	}
	if s.Problem != "" {
		f.Fails, f.Text = true, "The excerpt was changed or damaged: "+s.Problem
	}
	return f
})

// VerifyExcerpt checks the excerpt in the directory dir, and returns the claim that it is unchanged and signed. ok is
// false if the directory has no excerpt. If key is not nil, the claim fails unless the excerpt is signed with that key.
func VerifyExcerpt(dir string, key ed25519.PublicKey) (c claim.Claim, ok bool, err error) {
	text, err := os.ReadFile(filepath.Join(dir, ExcerptName))
	if errors.Is(err, fs.ErrNotExist) {
		return c, false, nil
	} else if err != nil {
		return c, false, err
	}
	var s excerptSubject
	s.Excerpt, s.Problem = readExcerpt(text)
	sum := sha256.Sum256(text)
	switch signature, err := readSignature(filepath.Join(dir, ExcerptName+SignatureSuffix)); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		s.Problem = err.Error()
	case signature.File != ExcerptName || signature.Hash != hex.EncodeToString(sum[:]):
		s.Problem = "another file was signed"
	case len(key) > 0 && !signature.by(key):
		s.Problem = "it is signed by another key, " + Fingerprint(signature.PublicKey)
	default:
		s.Signature = claim.Read(signature, claim.Coverage{})
	}
	return claim.Judge(excerptIs, s), true, nil
}

// readExcerpt reads the first line of an excerpt, and checks that all other lines are events in the right order.
// problem describes what is wrong, or is empty.
func readExcerpt(text []byte) (head Excerpt, problem string) {
	first, rest, _ := bytes.Cut(text, []byte("\n"))
	h := excerptLine{}
	if err := json.Unmarshal(first, &h); err != nil || h.Excerpt == nil {
		return head, "its first line does not describe the log that the excerpt is from"
	}
	head = *h.Excerpt
	var before Event
	hash, n := "", 0
	for line := range bytes.Lines(rest) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		var e Event
		if err := json.Unmarshal(line, &e); err != nil || e.Seq <= before.Seq || e.Seq == before.Seq+1 && n > 0 && e.Prev != hash {
			return head, fmt.Sprintf("line %d is not an event, or its number or its hash of the previous line is wrong", n+2)
		}
		before, hash = e, hashOf(line)
		n++
	}
	if n != head.Lines {
		return head, fmt.Sprintf("it has %d lines instead of %d", n, head.Lines)
	}
	return head, ""
}
