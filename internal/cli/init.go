// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/robotspolicy/caddy-robots-policy/internal/cli/firstpolicy"
	"github.com/robotspolicy/caddy-robots-policy/internal/cli/policyinput"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
)

// initFlags are the flags of init as given.
type initFlags struct {
	search, training, aiAnswers, aiSearch, host, from, out string
	closed, staging                                        []string
}

func initCommand() *cobra.Command {
	var f initFlags
	cmd := Command("init", "Writes a first policy file, from a few questions, flags or an existing robots.txt",
		func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return errors.New("init takes no arguments; give the answers as flags (see --help), or run it in a terminal without any")
			}
			a, err := f.answers()
			if err != nil {
				return err
			}
			if !answersGiven(cmd) {
				if !isTerminal(cmd.InOrStdin()) {
					return errors.New("there is no terminal to ask questions in: give the answers as flags, such as: init --search yes --ai-training no --host www.example.com")
				}
				if a, err = firstpolicy.Ask(cmd.Context(), cmd.InOrStdin(), cmd.ErrOrStderr()); err != nil {
					return err
				}
			}
			return runInit(cmd, a, f.out)
		})
	fl := cmd.Flags()
	fl.StringVar(&f.search, "search", "", "may search engines find the site? yes or no (default yes; with --from: as in robots.txt)")
	fl.StringVar(&f.training, "ai-training", "", "may AI be trained with it? yes or no (default no; with --from: as in robots.txt)")
	fl.StringVar(&f.aiAnswers, "ai-answers", "", "may AI products answer from it? yes or no (default yes; with --from: as in robots.txt)")
	fl.StringVar(&f.aiSearch, "ai-search", "", "with --ai-answers no: may search engines read it that feed AI answers, such as PerplexityBot? yes or no (default yes)")
	fl.StringArrayVar(&f.closed, "closed", nil, "a path that crawlers may not read, such as /members/; can be repeated")
	fl.StringArrayVar(&f.staging, "staging", nil, "a host that search engines must not list, such as staging.example.com; can be repeated")
	fl.StringVar(&f.host, "host", "", "the host name of the site")
	fl.StringVar(&f.from, "from", "", "an existing robots.txt to start from: a file or a URL")
	fl.StringVarP(&f.out, "output", "o", "site-policy.yaml", "the file to write; - is the standard output")
	return cmd
}

// answersGiven reports whether a flag answers a question.
func answersGiven(cmd *cobra.Command) bool {
	given := false
	cmd.Flags().Visit(func(f *pflag.Flag) { given = given || f.Name != "output" })
	return given
}

// answers reads the flags.
func (f *initFlags) answers() (a firstpolicy.Answers, err error) {
	for _, q := range []struct {
		flag, value string
		answer      *firstpolicy.Answer
	}{{"search", f.search, &a.Search}, {"ai-training", f.training, &a.Training}, {"ai-answers", f.aiAnswers, &a.AIAnswers}, {"ai-search", f.aiSearch, &a.AISearch}} {
		if *q.answer, err = firstpolicy.ParseAnswer(q.value); err != nil {
			return a, fmt.Errorf("invalid --%s %q: must be yes or no", q.flag, q.value)
		}
	}
	for _, s := range f.closed {
		if err := a.AddClosed(s); err != nil {
			return a, fmt.Errorf("--closed: %w", err)
		}
	}
	for _, s := range f.staging {
		if err := a.AddStaging(s); err != nil {
			return a, fmt.Errorf("--staging: %w", err)
		}
	}
	if f.host != "" {
		h, err := firstpolicy.ParseHost(f.host, false)
		if err != nil {
			return a, fmt.Errorf("--host: %w", err)
		}
		a.Host = string(h)
	}
	if f.from != "" {
		a.SetFrom(f.from)
	}
	return a, nil
}

// runInit writes the policy for the answers and says what it means.
func runInit(cmd *cobra.Command, a firstpolicy.Answers, file string) error {
	errOut := cmd.ErrOrStderr()
	var imported *robotstxt.Imported
	if a.From != "" {
		var err error
		if imported, err = importFrom(cmd.Context(), errOut, a.From); err != nil {
			return err
		}
		if imported == nil {
			a.From = ""
		}
	}
	text, s, contradictions, err := firstpolicy.Build(a, imported)
	switch {
	case errors.Is(err, firstpolicy.ErrContradictory):
		return err
	case err != nil:
		return failure{err}
	}
	for _, c := range contradictions {
		if c.Answered {
			fmt.Fprintf(errOut, "note: robots.txt says otherwise, and stays as it is: %s. So this does not hold: %s\n", c.Instead, c.Test)
		} else {
			fmt.Fprintf(errOut, "note: your answers override robots.txt: %s. So this does not hold any more: %s\n", c.Instead, c.Test)
		}
	}
	if file == "-" {
		if _, err := cmd.OutOrStdout().Write(text); err != nil {
			return err
		}
		return firstpolicy.WriteMeaning(errOut, s, a, time.Now())
	}
	if err := writeNew(file, text); err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	fmt.Fprintf(out, "Wrote %s.\n\n", file)
	if err := firstpolicy.WriteMeaning(out, s, a, time.Now()); err != nil {
		return err
	}
	return firstpolicy.WriteNextSteps(out, a, file)
}

// writeNew writes a file that must not exist.
func writeNew(name string, data []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists, and init does not overwrite: give another name with -o", name)
	} else if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// importFrom reads an existing robots.txt, from a file or URL, as a policy. It is nil if
// the site has none.
func importFrom(ctx context.Context, errOut io.Writer, name string) (*robotstxt.Imported, error) {
	raw, err := policyinput.ReadRaw(ctx, name, nil)
	if err != nil {
		return nil, err
	}
	if raw.None {
		fmt.Fprintf(errOut, "note: %s does not exist, so the policy starts from nothing\n", name)
		return nil, nil
	}
	c, err := policyinput.Convert(name, raw.Data)
	if err != nil {
		return nil, err
	}
	writeNotes(errOut, name, c.Notes)
	return c.Imported, nil
}
