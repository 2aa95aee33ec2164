// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/robotspolicy/caddy-robots-policy/activity/evidence"
	"github.com/robotspolicy/caddy-robots-policy/claim"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

// verifyFlags holds the file names in the flags --key and --authority. A log must be signed with the key, and its time
// stamps must be from the authority.
type verifyFlags struct{ key, authority string }

func (v *verifyFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&v.key, "key", "", "a public key (PEM); the log must be signed with the private key that belongs to it")
	flags.StringVar(&v.authority, "authority", "", "the certificate (PEM) of a time-stamping authority; the time stamps of the log must come from this authority")
}

// areDirectories returns an error for an argument that is a file. For a missing directory it returns nil, because the
// command reports an error when it reads the log.
func areDirectories(args []string) error {
	for _, dir := range args {
		if info, err := os.Stat(dir); err == nil && !info.IsDir() {
			return fmt.Errorf("%s is a file; name the directory of the evidence log", dir)
		}
	}
	return nil
}

// check verifies an evidence log.
func (v *verifyFlags) check(dir string) (*evidence.Check, error) {
	var key ed25519.PublicKey
	var roots *x509.CertPool
	var err error
	if v.key != "" {
		if key, err = evidence.ReadPublicKey(v.key); err != nil {
			return nil, err
		}
	}
	if v.authority != "" {
		b, err := os.ReadFile(v.authority)
		if err != nil {
			return nil, err
		}
		if roots = x509.NewCertPool(); !roots.AppendCertsFromPEM(b) {
			return nil, errors.New(v.authority + " has no certificate (PEM)")
		}
	}
	return evidence.Verify(dir, key, roots)
}

// excerpt verifies an excerpt of a log. ok is false if the directory does not contain an excerpt.
func (v *verifyFlags) excerpt(dir string) (c claim.Claim, ok bool, err error) {
	var key ed25519.PublicKey
	if v.key != "" {
		if key, err = evidence.ReadPublicKey(v.key); err != nil {
			return c, false, err
		}
	}
	return evidence.VerifyExcerpt(dir, key)
}

// wholes returns, for each log, the claim that the log is complete and signed.
func wholes(logs []evidence.Checked) (all []claim.Claim) {
	for _, l := range logs {
		all = append(all, l.Check.Whole())
	}
	return all
}

// writeExcerptCheck prints the claim about an excerpt. Its error determines the exit code (see exitOf).
func writeExcerptCheck(cmd *cobra.Command, asJSON bool, c claim.Claim) error {
	err := printResult(cmd, asJSON, c, func(out io.Writer) error {
		_, err := fmt.Fprintln(out, c.Text()+".")
		for _, g := range c.Gaps() {
			fmt.Fprintln(out, "  "+g.What+"; "+g.Close)
		}
		return err
	})
	return cmp.Or(err, exitOf(c))
}

// exitOf returns the exit code for claims. The exit code is 1 if a claim fails. Otherwise it is 3 if a claim cannot be
// judged.
func exitOf(all ...claim.Claim) (exit error) {
	for _, c := range all {
		switch c.Outcome() {
		case claim.Fails:
			return errReported
		case claim.CannotBeJudged:
			exit = errUndecided
		case claim.Holds:
		}
	}
	return exit
}

func verifyEvidenceCommand() *cobra.Command {
	var asJSON bool
	var last string
	var of storageOf
	var verify verifyFlags
	cmd := Command("verify-evidence DIR... [--key FILE] [--last FILE]", "Checks that an evidence log was not changed or damaged",
		between(1, math.MaxInt, "DIR", func(cmd *cobra.Command, args []string) error {
			if last != "" && len(args) > 1 {
				return errors.New("--last works with one log only; name one directory")
			}
			if err := areDirectories(args); err != nil {
				return err
			}
			if c, ok, err := verify.excerpt(args[0]); ok || err != nil {
				if err != nil || len(args) > 1 {
					return cmp.Or(err, errors.New("an excerpt of a log can only be checked alone; name only the directory of the excerpt"))
				}
				return writeExcerptCheck(cmd, asJSON, c)
			}
			var mark *evidence.Mark
			if last != "" {
				m, err := readMark(last, of)
				if err != nil {
					return err
				}
				mark = &m
			}
			logs, ends := make([]evidence.Checked, len(args)), make([]claim.Claim, len(args))
			for i, dir := range args {
				c, err := verify.check(dir)
				if err != nil {
					return err
				}
				logs[i] = evidence.Checked{Dir: dir, Check: c}
				if ends[i], err = c.Reaches(dir, mark); err != nil {
					return err
				}
			}
			_, c := evidence.Together(logs)
			result := struct {
				*evidence.Check
				Whole []claim.Claim `json:"whole"` // for each log, the claim that the log is complete and signed
				End   []claim.Claim `json:"end"`   // for each log, the claim that lines are not missing at its end
			}{c, wholes(logs), ends}
			if err := printResult(cmd, asJSON, result, func(out io.Writer) error {
				for i, l := range logs {
					if len(logs) > 1 {
						fmt.Fprintf(out, "%s:\n", l.Dir)
					}
					if _, err := io.WriteString(out, checkText(l.Check, ends[i], verify.key != "", verify.authority != "")); err != nil {
						return err
					}
				}
				return nil
			}); err != nil {
				return err
			}
			if mark != nil {
				return exitOf(append(result.Whole, ends...)...)
			}
			return exitOf(result.Whole...)
		}))
	cmd.Long = `
Checks an evidence log: the hashes that link its lines, the published texts that it
contains, and its signatures. With --key, the log must be signed with that key. Use a copy
of the public key that you did not get from the server.

An older copy of a log also passes this check. To detect that someone has replaced a log
with an older copy, use --last with a signature or time stamps that you store in another
place. Or use --last with the storage:KEY after "copy" in the evidence block of the
Caddyfile. A signature, a time stamp and the value at KEY each identify a line of the log,
and the log must still contain that line. Without --last, the command does not detect lines
that are missing at the end.

The exit code is:
  0  the log is intact, and signed up to the line that the output names
  1  the log was changed or damaged, or does not contain the line that --last refers to
  2  the log cannot be read
  3  the log cannot be judged, because it is not signed, or because it records a gap,
     such as events that were left out

If you give several logs, the command checks each log. The exit code is 1 if it would be 1
for at least one of the logs. Otherwise, it is 3 if it would be 3 for at least one log.`
	cmd.Flags().StringVar(&last, "last", "", "a copy of the log's signature (.sig) or time stamps (.stamps) that you keep in another place, or storage:KEY for a copy in Caddy's storage. The log must contain the line that the copy identifies")
	of.flags(cmd, "with --last storage:KEY: the configuration that sets the storage")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	verify.add(cmd.Flags())
	return cmd
}

// readMark reads a mark from a file or from a key in Caddy's storage. A mark describes the last known end of a log.
func readMark(last string, of storageOf) (m evidence.Mark, err error) {
	if !strings.HasPrefix(last, source.StoragePrefix) {
		return evidence.ReadMark(last)
	}
	key, err := source.StorageKey(last)
	if err != nil {
		return m, err
	}
	ctx, cancel := caddy.NewContext(caddy.Context{Context: context.Background()})
	defer cancel()
	s, err := of.open(ctx)
	if err != nil {
		return m, err
	}
	limited, stop := context.WithTimeout(ctx, storageTimeout)
	defer stop()
	b, err := s.Load(limited, key)
	if err != nil {
		return m, fmt.Errorf("there is no copy at %s; add \"copy\" to the evidence block of the Caddyfile, and the server writes a copy within an hour: %w", s.place(key), err)
	}
	return evidence.ParseMark(last, b)
}

// checkText returns a text with the results of a check. The text explains what the results prove and what they do not
// prove.
func checkText(c *evidence.Check, last claim.Claim, byKey, byAuthority bool) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("Events in the log: %d. Files: %d. Period: %s to %s.", c.Events, c.Files, c.First.UTC().Format(time.RFC3339), c.Last.UTC().Format(time.RFC3339))
	claimed := func(x claim.Claim) {
		line("%s.", x.Text())
		if x.Outcome() == claim.Fails && len(x.Lines()) > 0 {
			line("  %s", strings.Join(x.Lines(), "\n  "))
		}
		for _, g := range x.Gaps() {
			line("  %s", strings.TrimSuffix(g.What+"; "+g.Close, "; "))
		}
	}
	if claimed(c.Whole()); len(c.Problems) > 0 {
		return b.String()
	}
	claimed(last)
	if !c.FromStart {
		line("According to the log, files before %s were deleted because of their age.", c.First.UTC().Format(time.DateOnly))
	}
	for _, k := range c.Keys {
		line("Signed by the key %s.", evidence.Fingerprint(k))
	}
	switch {
	case len(c.Keys) == 0:
	case byKey:
		line("Only the owner of that key can have changed any of the lines up to line %d.", c.SignedTo)
	default:
		line("Only the owner of a key named above can have changed any of the lines up to line %d. The log does not show who that is. To make sure that the log is signed with your key and not with a forger's, give your public key with --key FILE.", c.SignedTo)
	}
	if n := len(c.Stamps); n > 0 {
		last := c.Stamps[n-1]
		line("Time stamps: %d. The last one covers all lines up to event %d, and was made at %s. According to %s, these lines existed at that time.", n, last.Seq, last.Time.Format(time.RFC3339), last.Authority)
		if !byAuthority {
			line("The command did not check whether the time stamps are really from this authority. To check this, give the authority's certificate with --authority FILE.")
		}
		line("It is not proven that the log is complete.")
		return b.String()
	}
	line("It is not proven when the lines were written, or that the log is complete.")
	return b.String()
}
