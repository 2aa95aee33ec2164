// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/catalogstore"
	"github.com/robotspolicy/caddy-robots-policy/internal/cli/policyinput"
	"github.com/robotspolicy/caddy-robots-policy/internal/leaf/english"
	"github.com/robotspolicy/caddy-robots-policy/site"
	"github.com/robotspolicy/caddy-robots-policy/site/compare"
)

// failOn lists the values of --fail-on. For each value, a function reports whether diff exits with 1.
var failOn = []struct {
	word string
	in   func(*difference) bool
}{
	{"search-loss", func(d *difference) bool {
		return len(d.Losses.Found) > 0 || d.contradicted() && len(d.Questions.SearchLosses()) > 0 || d.undecided()
	}},
	{"decisions", func(d *difference) bool { return len(d.Changes) > 0 || d.contradicted() || d.undecided() }},
	{"settings", func(d *difference) bool { return len(d.Settings) > 0 || d.undecided() }},
	{"spellings", func(d *difference) bool { return d.spellings() || d.undecided() }},
	{"any", func(d *difference) bool { return !d.Empty() || d.spellings() || d.contradicted() || d.undecided() }},
	{"none", func(*difference) bool { return false }},
}

func failWords() (words []string) {
	for _, f := range failOn {
		words = append(words, f.word)
	}
	return words
}

func diffCommand() *cobra.Command {
	var asJSON bool
	var fail []string
	var catalog, merge string
	cmd := Command("diff OLD NEW | --catalog FILE|URL POLICY", "Shows what each crawler gains and loses between two policies or robots.txt files, or under a new catalog",
		func(cmd *cobra.Command, args []string) error {
			if catalog == "" && len(args) != 2 || catalog != "" && len(args) != 1 {
				return argumentsError(args, "OLD and NEW, or --catalog FILE|URL and one policy")
			}
			for _, word := range fail {
				if !slices.Contains(failWords(), word) {
					return fmt.Errorf("invalid --fail-on %q: must be %s", word, english.List(failWords(), "or"))
				}
			}
			var d *difference
			var err error
			if catalog != "" {
				d, err = underCatalog(cmd, args[0], catalog)
			} else {
				d, err = compareInputs(cmd, [2]string(args), merge)
			}
			if err != nil {
				return err
			}
			return reportDifference(cmd, d, asJSON, fail)
		})
	cmd.Long = `
Lists what each crawler may do under NEW but not under OLD, and the reverse, with the
hosts and the parts of the site. It also lists the settings that change. OLD and NEW
are each a policy file, a robots.txt, the URL of one, or - for the standard input. If
you give the URL of a site, the command reads the robots.txt of the site.

A robots.txt is read in the same way as by Google's crawlers, and converted to a policy.
To check the conversion, a second, independent parser of robots.txt also compares both
files. For each crawler and each path in one of the files, and for similar paths, this
parser checks whether both files allow the path, or both disallow it.

With --catalog, the command shows how another catalog of crawlers changes the decisions
of a policy.

With --fail-on, you choose the differences for which the command exits with 1:
  search-loss  search engines lose something, such as a path (the default)
  decisions    any crawler gains or loses something
  settings     a setting changes, such as a sitemap or a test
  spellings    only the spelling of a path in robots.txt changes, such as /a%3Ab instead
               of /a:b
  any          a difference of any class above
  none         differences never lead to exit code 1

The exit code is:
  0  success
  1  there is a difference of a class that --fail-on names (by default, search engines
     lose something), a file has an error, or the two files are too large to compare
  2  the command cannot run, because an argument is invalid or a file cannot be read`
	cmd.Example = `  caddy robots-policy diff site-policy.yaml new.yaml
  caddy robots-policy diff https://www.example.com/robots.txt site-policy.yaml
  caddy robots-policy diff --fail-on decisions,settings old/robots.txt robots.txt`
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the changes as JSON")
	mergeFlag(cmd, &merge)
	cmd.Flags().StringVar(&catalog, "catalog", "", "show how the decisions of a policy differ between the catalog of this program and the catalog in `FILE|URL`")
	cmd.Flags().StringSliceVar(&fail, "fail-on", []string{"search-loss"}, "exit with 1 if there are differences of these `CLASSES`: search-loss, decisions, settings, spellings or any; with none, differences do not change the exit code. Separate several with commas")
	return cmd
}

// compareInputs compares two policies or robots.txt files. merge is the name of the site's own robots.txt, or "".
func compareInputs(cmd *cobra.Command, names [2]string, merge string) (*difference, error) {
	below, err := readBelow(cmd, merge)
	if err != nil {
		return nil, err
	}
	var inputs [2]*policyinput.Input
	var sites [2]*site.Site
	robots, notes := 0, 0
	for i, name := range names {
		in, err := policyinput.Read(cmd.Context(), name, cmd.InOrStdin())
		if errors.Is(err, policyinput.ErrInvalid) {
			return nil, failure{err}
		}
		if err != nil {
			return nil, err
		}
		writeNotes(cmd.ErrOrStderr(), in.Name, in.Notes)
		inputs[i], sites[i] = in, in.Site
		switch {
		case in.Robots != nil:
			robots++
			notes += len(in.Notes)
		case below != nil:
			sites[i] = in.Site.Told(below)
			in.Over(below)
		}
	}
	if below != nil && robots == len(inputs) {
		return nil, rejectFlags(cmd, inputs[0].Name, "merge")
	}
	d := &difference{Diff: compare.Sites(sites[0], sites[1], compare.Options{})}
	if robots > 0 {
		d.Settings = statedSettings(d.Settings, inputs[0].Robots != nil, inputs[1].Robots != nil)
		d.RobotsTxt = false // the independent parser compares the texts
		d.Noted = notes > 0 && !bytes.Equal(inputs[0].Robots, inputs[1].Robots)
		d.Questions = policyinput.AskBoth(inputs[0], inputs[1], cmp.Or(hostOf(names[0]), hostOf(names[1])))
	}
	return d, nil
}

// underCatalog compares the effect of a policy under the program's catalog with its effect under a new catalog.
func underCatalog(cmd *cobra.Command, name, catalog string) (*difference, error) {
	next, _, err := parseCatalog(cmd, catalog)
	if err != nil {
		return nil, err
	}
	before, _ := crawlers.Default() // the built-in catalog is valid
	text, err := readFile(cmd, name)
	if err != nil {
		return nil, err
	}
	d, err := catalogstore.Compare(fileName(name), text, before, next)
	if err != nil {
		return nil, failure{err}
	}
	return &difference{Diff: d}, nil
}

func reportDifference(cmd *cobra.Command, d *difference, asJSON bool, fail []string) error {
	if err := printResult(cmd, asJSON, d, d.WriteText); err != nil {
		return err
	}
	for _, f := range failOn {
		if slices.Contains(fail, f.word) && f.in(d) {
			return errReported
		}
	}
	return nil
}

// difference is the result of the diff command.
type difference struct {
	*compare.Diff

	// Questions is the result of an additional comparison, which uses an independent parser of robots.txt. It is set
	// only if one of the two files is a robots.txt, because the main comparison uses a policy converted from this file.
	Questions *policyinput.Questions `json:"questions,omitempty"`

	// Noted is true if notes were printed on standard error. Such a note names lines of a robots.txt that a policy
	// cannot express, or says how import has interpreted a line. The changes do not include these lines.
	Noted bool `json:"noted,omitempty"`
}

// inRobots lists the settings that a robots.txt can state.
var inRobots = []string{"sitemaps", "publish.preamble", "publish.license", "publish.lines"}

// statedSettings returns the settings that differ between two files. If one of the files is a robots.txt, its
// conversion has added settings that a robots.txt cannot state, such as tests. statedSettings ignores the values of
// these settings.
func statedSettings(all []compare.Setting, oldRobots, newRobots bool) (stated []compare.Setting) {
	for _, s := range all {
		if s.Key == "expect" || strings.HasPrefix(s.Key, "rules[") && strings.HasSuffix(s.Key, "].intended") {
			continue
		}
		if !slices.Contains(inRobots, s.Key) {
			if oldRobots {
				s.Old = ""
			}
			if newRobots {
				s.New = ""
			}
		}
		if s.Old != s.New {
			stated = append(stated, s)
		}
	}
	return stated
}

// spellings reports whether only the text of robots.txt changes, but not its meaning.
func (d *difference) spellings() bool {
	return d.Empty() && !d.contradicted() && (d.RobotsTxt || d.Questions != nil && d.Questions.Spellings > 0)
}

// undecided reports whether there may be further differences, because a comparison was not complete.
func (d *difference) undecided() bool {
	return !d.Complete || len(d.Losses.Reverified) > 0 || d.Questions != nil && !d.Questions.Complete
}

// contradicted reports whether the independent parser found differences, although the comparison of the policies found
// none.
func (d *difference) contradicted() bool {
	return len(d.Changes) == 0 && d.Questions != nil && d.Questions.Differ > d.Questions.Spellings
}

// kinds returns what changes according to the independent parser: decisions about crawling, preferences, or both. It
// ignores changes that concern only another spelling of a path, such as /a%3Ab for /a:b.
func (d *difference) kinds() []string {
	q, preferences := d.Questions, 0
	for i := range q.Differences {
		if c := &q.Differences[i]; c.Usage != "" {
			preferences += len(c.Crawlers)
		}
	}
	var kinds []string
	if q.Differ-q.Spellings > preferences {
		kinds = append(kinds, "decisions about crawling")
	}
	if preferences > 0 {
		kinds = append(kinds, "preferences about AI or search")
	}
	return kinds
}

// WriteText writes a conclusion from both comparisons, and then the changes.
func (d *difference) WriteText(w io.Writer) error {
	q := d.Questions
	var conclusion string
	switch {
	case q == nil:
		return d.Diff.WriteText(w)
	case d.contradicted():
		kinds := english.List(d.kinds(), "and")
		conclusion = strings.ToUpper(kinds[:1]) + kinds[1:] + " change. The comparison of the policies does not find these changes. But a second, independent parser of robots.txt finds them, because it reads the robots.txt files themselves, and not policies converted from them."
	case len(d.Changes) == 0 && !q.Complete:
		conclusion = "The comparison of the policies finds no changed decisions. But the files are too large to compare completely with a second, independent parser of robots.txt."
	case d.NothingChanges().Holds() && (d.Noted || q.Differ > 0) && q.Same().Holds():
		_, err := fmt.Fprintf(w, "%s.\nChecked with an independent parser of robots.txt: %s.\n", d.same(), q.Sentence())
		return err
	default:
		if err := d.Diff.WriteText(w); err != nil {
			return err
		}
		_, err := fmt.Fprintf(w, "Checked with an independent parser of robots.txt: %s.\n", q.Sentence())
		return err
	}
	if _, err := fmt.Fprintln(w, conclusion); err != nil {
		return err
	}
	if err := q.WriteText(w); err != nil || len(d.Settings) == 0 {
		return err
	}
	if _, err := io.WriteString(w, "\nSettings:\n"); err != nil {
		return err
	}
	for i := range d.Settings {
		if _, err := fmt.Fprintf(w, "  %s\n", &d.Settings[i]); err != nil {
			return err
		}
	}
	return nil
}

// same returns a sentence for two files between which nothing changes. The sentence mentions two possible exceptions:
// spellings of paths, and the lines in the notes.
func (d *difference) same() string {
	text := "nothing changes"
	if d.Questions.Differ > 0 {
		text = "all decisions and settings remain the same, but robots.txt lists other spellings of paths"
	}
	if d.Noted {
		return "Apart from what the notes say, " + text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// hostOf returns the host of a URL, or "" for files.
func hostOf(name string) string {
	if u, err := url.Parse(name); err == nil {
		return u.Host
	}
	return ""
}
