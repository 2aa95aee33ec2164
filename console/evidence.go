// SPDX-License-Identifier: Apache-2.0

package console

import (
	"archive/zip"
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/semaphore"

	"github.com/robotspolicy/caddy-robots-policy/activity/evidence"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/recorders"
	"github.com/robotspolicy/caddy-robots-policy/internal/cli"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
)

// evidenceReaders limits the number of evidence downloads at the same time. Downloads do not count toward the limit on
// pages, because an archive can have hundreds of megabytes, and a slow download must not delay the pages.
var evidenceReaders = semaphore.NewWeighted(4)

const (
	evidenceTimeout = 10 * time.Minute
	stalledTimeout  = 30 * time.Second // maximum time for which a client may stop reading
)

// evidenceFile sends an evidence archive with a report about one crawler. The archive can be verified on another
// machine. People who may see all hosts receive complete days of the log, with their signatures. Other people receive
// an excerpt about the hosts that they may see.
func (s *server) evidenceFile(w http.ResponseWriter, r *http.Request) {
	if !evidenceReaders.TryAcquire(1) {
		w.Header().Set("Retry-After", "60")
		http.Error(w, "Several people are downloading evidence now. Try again in a minute.", http.StatusServiceUnavailable)
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
	b := &bundle{view: v, Crawler: v.Param("name")}
	switch {
	case log == nil:
		s.fail(w, r, failed(http.StatusNotFound, "this server has no evidence log; add the option \"evidence\" to robots_policy"))
		return
	case b.Crawler == "":
		s.fail(w, r, failed(http.StatusBadRequest, "name a crawler"))
		return
	}
	b.dir = log.Directory
	if b.key, err = log.PrivateKey(); err == nil {
		b.check, err = evidence.Verify(b.dir, nil, nil)
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/zip")
	w.Header().Set("Content-Disposition", `attachment; filename="evidence.zip"`)
	if r.Method == http.MethodHead {
		return
	}
	b.out = zip.NewWriter(impatient{w})
	if err := b.write(); err != nil { // the archive does not get its table of contents, so its readers see that it is incomplete
		s.logger.Error("a download of evidence is incomplete", zap.Error(err))
		return
	}
	_ = b.out.Close() // an error means that the client has disconnected
}

// bundle writes an archive with evidence.
type bundle struct {
	*view
	Crawler string
	dir     string
	key     ed25519.PrivateKey // nil if the excerpt is not signed
	check   *evidence.Check
	out     *zip.Writer
}

// create begins a file in the archive. It returns an error if evidenceTimeout has passed.
func (b *bundle) create(name string) (io.Writer, error) {
	if err := b.ctx.Err(); err != nil {
		return nil, err
	}
	return b.out.CreateHeader(&zip.FileHeader{Name: "evidence/" + name, Method: zip.Deflate, Modified: b.Now})
}

func (b *bundle) write() error {
	if err := b.text("README.txt", b.readme()); err != nil {
		return err
	}
	if b.key != nil {
		der, err := x509.MarshalPKIXPublicKey(b.key.Public())
		if err != nil {
			return err
		}
		if err := b.text("evidence.pub", string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))); err != nil {
			return err
		}
	}
	if b.may != nil {
		return b.excerpt()
	}
	if err := b.report("report.html", ""); err != nil {
		return err
	}
	return evidence.Bundle(b.dir, b.create)
}

func (b *bundle) text(name, text string) error {
	w, err := b.create(name)
	if err == nil {
		_, err = io.WriteString(w, text)
	}
	return err
}

// readme returns a text that explains how to verify the files in the archive.
func (b *bundle) readme() string {
	text := "This is the evidence log of a server, with a report about " + b.Crawler + ".\n"
	if b.may != nil {
		text = "This is an excerpt of the evidence log of a server, about " + b.Crawler + " on " + english.List(b.may, "and") + ", with a report.\n"
	}
	text += "To check it, run in this folder:\n\n  caddy robots-policy verify-evidence ."
	if b.key == nil {
		return text + "\n\nThe log is not signed.\n"
	}
	public, _ := b.key.Public().(ed25519.PublicKey)
	return text + " --key evidence.pub\n\nThe fingerprint of the key is " + evidence.Fingerprint(base64.StdEncoding.EncodeToString(public)) + ". Compare it with a copy of the fingerprint that you got from another place.\n"
}

// report writes an HTML file that explains the evidence to readers. The report covers one host or, if host is empty,
// all hosts.
func (b *bundle) report(name, host string) error {
	q := evidence.Question{Crawler: b.Crawler, Host: host, Paths: 50}
	a, err := evidence.Ask(b.dir, q)
	if err != nil {
		return err
	}
	if !b.showsText() {
		a.Published, a.Acts = nil, nil // these lists also cover hosts that the person may not see
	}
	w, err := b.create(name)
	if err != nil {
		return err
	}
	return cli.WriteEvidenceReport(w, q, a, b.check)
}

// excerpt writes the part of the evidence that people with access to only some hosts may see.
func (b *bundle) excerpt() error {
	for _, host := range b.may {
		if err := b.report("report-"+host+".html", host); err != nil {
			return err
		}
	}
	w, err := b.create(evidence.ExcerptName)
	if err != nil {
		return err
	}
	signature, err := evidence.WriteExcerpt(w, b.dir, evidence.Excerpt{Crawler: b.Crawler, Hosts: b.may}, b.key, func(e *evidence.Event) bool {
		return e.Host != "" && slices.Contains(b.may, e.Host) && (e.Crawler == b.Crawler || e.Type == evidence.TypeServed)
	})
	if err != nil || signature == nil {
		return err
	}
	return b.text(evidence.ExcerptName+evidence.SignatureSuffix, fmt.Sprintf("%s\n", signature))
}

// impatient is a ResponseWriter that fails if the client does not read for stalledTimeout.
type impatient struct{ http.ResponseWriter }

func (w impatient) Write(b []byte) (int, error) {
	// If the connection does not support deadlines, only the timeout of the whole download applies.
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(stalledTimeout))
	return w.ResponseWriter.Write(b)
}
