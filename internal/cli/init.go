// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
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
)

// initFlags holds the values of the flags of the command "init".
type initFlags struct {
	topics          [len(firstpolicy.Topics)]string
	host, from, out string
	closed, staging []string
}

func initCommand() *cobra.Command {
	var f initFlags
	cmd := Command("init", "Writes a first policy file from your answers to a few questions, from flags, or from an existing robots.txt",
		func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return errors.New("init takes no arguments; give the answers as flags (see --help), or run init in a terminal without flags")
			}
			open := func(name string) ([]byte, error) { return readRobots(cmd, name) }
			a, err := f.answers(open)
			if err != nil {
				return err
			}
			if answersGiven(cmd) {
				return runInit(cmd, a, f.out, true)
			}
			if !isTerminal(cmd.InOrStdin()) {
				return errors.New("there is no terminal for questions; give the answers as flags, such as: init --search yes --ai-training no --host www.example.com")
			}
			if a, err = ask(cmd, f.out, open); err != nil {
				return err
			}
			return runInit(cmd, a, f.out, false)
		})
	fl := cmd.Flags()
	for i, t := range firstpolicy.Topics {
		fl.StringVar(&f.topics[i], t.Flag, "", fmt.Sprintf("%s yes or no (default %s, or as in the robots.txt given with --from)", t.Question, t.Default))
	}
	fl.StringArrayVar(&f.closed, "disallow", nil, "a path that crawlers may not read, such as /members/; can be repeated")
	fl.StringArrayVar(&f.staging, "staging", nil, "a host that search engines must not list, such as staging.example.com; can be repeated")
	fl.StringVar(&f.host, "host", "", "the host name of the site")
	fl.StringVar(&f.from, "from", "", "an existing robots.txt to start from: a file or a URL")
	fl.StringVarP(&f.out, "output", "o", "site-policy.yaml", "the file to write; - is the standard output")
	return cmd
}

// ask asks the user the questions about the site in the terminal. It shows the resulting policy before a file is
// written.
func ask(cmd *cobra.Command, file string, open func(string) ([]byte, error)) (firstpolicy.Answers, error) {
	out := cmd.ErrOrStderr()
	if _, err := os.Lstat(file); err == nil {
		return firstpolicy.Answers{}, errExists(file)
	}
	return firstpolicy.Ask(cmd.Context(), firstpolicy.Terminal{
		In: cmd.InOrStdin(), Out: out, Open: open, File: file,
		Show: func(a firstpolicy.Answers) error {
			fmt.Fprintln(out)
			b, err := firstpolicy.Build(a)
			if err != nil {
				return err
			}
			writeContradictions(out, b)
			return cmp.Or(b.WriteMeaning(out, time.Now()), b.WriteRobotsTxt(out))
		},
	})
}

// answersGiven reports whether the command line has flags that answer questions about the site.
func answersGiven(cmd *cobra.Command) bool {
	given := false
	cmd.Flags().Visit(func(f *pflag.Flag) { given = given || f.Name != "output" })
	return given
}

// answers converts the values of the flags to answers.
func (f *initFlags) answers(open func(string) ([]byte, error)) (a firstpolicy.Answers, err error) {
	for i, value := range f.topics {
		if a.To[i], err = firstpolicy.ParseAnswer(value); err != nil {
			return a, fmt.Errorf("invalid --%s %q: must be yes or no", firstpolicy.Topics[i].Flag, value)
		}
	}
	for _, s := range f.closed {
		if err := a.AddClosed(s); err != nil {
			return a, fmt.Errorf("--disallow: %w", err)
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
		return a, a.SetFrom(f.from, open)
	}
	return a, nil
}

// runInit writes the policy that results from the answers a. If show is true, it also prints the meaning of the policy.
func runInit(cmd *cobra.Command, a firstpolicy.Answers, file string, show bool) error {
	b, err := firstpolicy.Build(a)
	switch {
	case errors.Is(err, firstpolicy.ErrContradictory):
		return err
	case err != nil:
		return failure{err}
	}
	out := cmd.OutOrStdout()
	if file == "-" {
		_, err = out.Write(b.Text)
		out = cmd.ErrOrStderr()
	} else if err = writeNew(file, b.Text, 0o644); err == nil {
		fmt.Fprintf(out, "Wrote %s.\n", file)
	} else if errors.Is(err, fs.ErrExist) {
		err = errExists(file)
	}
	if err == nil && show {
		writeContradictions(cmd.ErrOrStderr(), b)
		fmt.Fprintln(out)
		err = b.WriteMeaning(out, time.Now())
	}
	if err != nil || file == "-" {
		return err
	}
	return b.WriteNextSteps(out, file)
}

func writeContradictions(w io.Writer, b *firstpolicy.Built) {
	writeNotes(w, "robots.txt", b.Notes)
	for _, c := range b.Contradictions {
		if c.Answered {
			fmt.Fprintf(w, "note: robots.txt contradicts your answers, and the policy keeps the rules of robots.txt: %s. So this part of your answers does not apply: %s\n", c.Instead, c.Test)
		} else {
			fmt.Fprintf(w, "note: your answers override robots.txt: %s. So this rule of robots.txt no longer applies: %s\n", c.Instead, c.Test)
		}
	}
}

// writeNew writes a new file. It returns an error if the file exists.
func writeNew(name string, data []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

func errExists(name string) error {
	return fmt.Errorf("%s exists, and init does not overwrite files; give another name with -o", name)
}

// readRobots reads an existing robots.txt that can be converted. It returns nil if the site does not have a robots.txt.
func readRobots(cmd *cobra.Command, name string) ([]byte, error) {
	raw, err := policyinput.ReadRobots(cmd.Context(), name, nil)
	if err != nil {
		return nil, err
	}
	if raw.None {
		fmt.Fprintf(cmd.ErrOrStderr(), "note: %s does not exist, so the policy starts without rules of a robots.txt\n", name)
		return nil, nil
	}
	_, err = policyinput.Convert(name, raw.Data)
	return raw.Data, err
}
