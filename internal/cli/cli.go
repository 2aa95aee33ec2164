// SPDX-License-Identifier: Apache-2.0

// Package cli has the subcommands of `caddy robots-policy`. They work on policy files without a running server.
package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/robotspolicy/caddy-robots-policy/internal/cli/policyinput"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/robotstxt"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// exitUsage is the exit code for invalid arguments and for errors that prevent a command from running.
const exitUsage = 2

// failure is an error in the policy file or in another file that a command checked. The exit code is 1.
type failure struct{ error }

// errReported is a failure that was already printed in full.
var errReported = failure{errors.New("the policy file has errors")}

// exitError is an exit code for a command that has already printed its result.
type exitError int

func (exitError) Error() string { return "see the output above" }

// Run is the function that runs a subcommand. If it returns a failure, the exit code is 1. An exitError has its own
// exit code. All other errors have the exit code 2.
type Run func(cmd *cobra.Command, args []string) error

var subcommands = []func() *cobra.Command{
	checkCommand, renderCommand, explainCommand, diffCommand, importCommand, schemaCommand, publishCommand, crawlersCommand,
	replayCommand, evidenceCommand, verifyEvidenceCommand, initCommand, auditCommand, setCommand, historyCommand,
}

// Register adds a subcommand from another package. It must be called from an init function.
func Register(subcommand func() *cobra.Command) { subcommands = append(subcommands, subcommand) }

// Commands returns the subcommands of this build.
func Commands() []*cobra.Command {
	all := make([]*cobra.Command, len(subcommands))
	for i, subcommand := range subcommands {
		all[i] = subcommand()
	}
	return all
}

func init() {
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:  "robots-policy",
		Usage: "<command> ...",
		Short: "Checks and explains policy files of robots_policy",
		Long: `
These commands work on policy files of the robots_policy directive. Caddy does not need to run.

To undo an edit, put the earlier file back. For a policy in Caddy's storage, "publish --undo"
brings back the previous version, and "history" lists the versions. Before you replace this
program with a new version, run "check" with the new version.

The exit code is 0 on success, and 1 if the policy file has an error. It is 2 if the command
cannot run, for example because an argument is invalid or a file cannot be read. Some
commands have more exit codes, which their help explains.`,
		CobraFunc: func(parent *cobra.Command) {
			rejectUnknown(parent)
			parent.AddCommand(Commands()...)
		},
	})
}

// Command returns a subcommand. The error of its run function is printed after the
// command's name.
func Command(use, short string, run Run) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, SilenceErrors: true, SilenceUsage: true}
	setRun(cmd, run)
	return cmd
}

func setRun(cmd *cobra.Command, run Run) {
	exit := func(err error) error {
		if err == nil {
			return nil
		}
		code, reported := errors.AsType[exitError](err)
		if err != errReported && !reported {
			fmt.Fprintf(cmd.ErrOrStderr(), "%s: %v\n", cmd.CommandPath(), err)
		}
		if _, ok := errors.AsType[failure](err); ok {
			return err // Caddy exits with 1
		}
		if !reported {
			code = exitUsage
		}
		return caddycmd.WrapCommandFuncForCobra(func(caddycmd.Flags) (int, error) { return int(code), nil })(cmd, nil)
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return exit(err) })
	cmd.RunE = func(_ *cobra.Command, args []string) error { return exit(run(cmd, args)) }
}

// exactly returns the run function of a subcommand that takes n arguments.
func exactly(n int, usage string, run Run) Run { return between(n, n, usage, run) }

// between returns the run function of a subcommand whose number of arguments is between least and most.
func between(least, most int, usage string, run Run) Run {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return argumentsError(args, usage)
		}
		return run(cmd, args)
	}
}

// rejectUnknown makes the parent command fail for an unknown subcommand. Without rejectUnknown, cobra would print the
// help text and succeed. A script with a typo, such as "chek" for "check", would then continue although the policy was
// not checked.
func rejectUnknown(parent *cobra.Command) {
	parent.SilenceErrors, parent.SilenceUsage = true, true
	parent.SuggestionsMinimumDistance = 2
	setRun(parent, func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			cmd.SetOut(cmd.ErrOrStderr())
			return errors.Join(cmd.Help(), errors.New("name a command"))
		}
		hint := "see --help"
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			slices.Sort(near)
			hint = fmt.Sprintf("did you mean %q?", near[0])
		}
		return fmt.Errorf("unknown command %q (%s)", args[0], hint)
	})
}

// load loads a policy file, or the standard input for "-". below is the site's own robots.txt, or nil. It is used only
// to run the tests in the policy file: the returned site does not contain its rules. load returns an error if the
// policy file cannot be read.
func load(cmd *cobra.Command, name string, below *robotstxt.File) (*site.Site, policyfile.Diagnostics, error) {
	data, err := readFile(cmd, name)
	if err != nil {
		return nil, nil, err
	}
	s, ds := site.LoadWith(fileName(name), data, policyfile.Options{Below: below})
	if s != nil && below != nil {
		s, _ = site.LoadWith(fileName(name), data, policyfile.Options{Accepted: true})
	}
	return s, ds, nil
}

// loadValid loads a policy file. If the file has errors, loadValid prints the diagnostics and returns an error.
func loadValid(cmd *cobra.Command, name string, below *robotstxt.File) (*site.Site, error) {
	s, ds, err := load(cmd, name, below)
	if err != nil || s != nil {
		return s, err
	}
	return nil, report(cmd, ds)
}

// report prints diagnostics to the standard error. It returns errReported if there are
// errors among them.
func report(cmd *cobra.Command, ds policyfile.Diagnostics) error {
	out := cmd.ErrOrStderr()
	if _, err := io.WriteString(out, ds.Colored(colored(out))+ds.Links()); err != nil {
		return err
	}
	if ds.HasErrors() {
		return errReported
	}
	return nil
}

// fileName returns the name that messages use for a file.
func fileName(name string) string {
	if name == "-" {
		return "<stdin>"
	}
	return name
}

// readFile reads a file, or the standard input for "-".
func readFile(cmd *cobra.Command, name string) ([]byte, error) {
	return policyinput.ReadFile(name, cmd.InOrStdin())
}

// printResult prints what a command found, as JSON or as text.
func printResult(cmd *cobra.Command, asJSON bool, result any, writeText func(io.Writer) error) error {
	if asJSON {
		return writeJSON(cmd.OutOrStdout(), result)
	}
	return writeText(cmd.OutOrStdout())
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// colored reports whether to use colors on w: on a terminal, unless the user has
// turned them off (https://no-color.org).
func colored(w io.Writer) bool { return os.Getenv("NO_COLOR") == "" && isTerminal(w) }

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func argumentsError(args []string, usage string) error {
	got := fmt.Sprintf("%d arguments", len(args))
	switch len(args) {
	case 0:
		got = "no arguments"
	case 1:
		got = fmt.Sprintf("only %q", args[0])
	}
	return fmt.Errorf("expected %s, got %s", usage, got)
}
