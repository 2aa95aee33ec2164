// SPDX-License-Identifier: Apache-2.0

// Package cli has the subcommands of `caddy robots-policy`. They work on policy files
// without a running server.
package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/robotspolicy/caddy-robots-policy/internal/cli/policyinput"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// Exit codes of the commands besides 0.
const (
	ExitPolicyError = 1 // the policy file has an error
	ExitUsage       = 2 // the command cannot be carried out as given
	ExitFaults      = 1 // audit found a fault
)

var errPolicy = errors.New("the policy file has errors")

// subcommands make the subcommands.
var subcommands = []func() *cobra.Command{
	checkCommand, renderCommand, explainCommand, diffCommand, importCommand, schemaCommand, publishCommand, crawlersCommand,
	replayCommand, evidenceCommand, verifyEvidenceCommand, initCommand, auditCommand,
}

// Register adds a subcommand of another package. It must be called from an init
// function.
func Register(subcommand func() *cobra.Command) { subcommands = append(subcommands, subcommand) }

func init() {
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:  "robots-policy",
		Usage: "<command> ...",
		Short: "Checks and explains policy files of robots_policy",
		Long: `
Works on policy files of the robots_policy directive, without a running server.

The exit code is 0 on success, 1 if the policy file has an error, and 2 if the
command cannot be carried out as given.`,
		CobraFunc: func(parent *cobra.Command) {
			rejectUnknown(parent)
			for _, subcommand := range subcommands {
				parent.AddCommand(subcommand())
			}
		},
	})
}

// Command returns a subcommand whose run function returns the exit code. Its error is
// printed after the command's name.
func Command(use, short string, run func(cmd *cobra.Command, args []string) (int, error)) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, SilenceErrors: true, SilenceUsage: true}
	setRun(cmd, run)
	return cmd
}

func setRun(cmd *cobra.Command, run func(cmd *cobra.Command, args []string) (int, error)) {
	exit := func(code int, err error) error {
		if err != nil {
			fmt.Fprintf(cmd.ErrOrStderr(), "%s: %v\n", cmd.CommandPath(), err)
		}
		switch code {
		case caddy.ExitCodeSuccess:
			return nil
		case ExitPolicyError:
			return errPolicy // Caddy exits with 1
		}
		return caddycmd.WrapCommandFuncForCobra(func(caddycmd.Flags) (int, error) { return code, nil })(cmd, nil)
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return exit(ExitUsage, err) })
	cmd.RunE = func(_ *cobra.Command, args []string) error { return exit(run(cmd, args)) }
}

// rejectUnknown makes the parent command fail for an unknown subcommand. By default
// cobra prints help and succeeds, and a script with a typo would go on as if the
// policy had been checked.
func rejectUnknown(parent *cobra.Command) {
	parent.SilenceErrors, parent.SilenceUsage = true, true
	parent.SuggestionsMinimumDistance = 2
	setRun(parent, func(cmd *cobra.Command, args []string) (int, error) {
		if len(args) == 0 {
			cmd.SetOut(cmd.ErrOrStderr())
			return ExitUsage, cmd.Help()
		}
		hint := "see --help"
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			slices.Sort(near)
			hint = fmt.Sprintf("did you mean %q?", near[0])
		}
		return ExitUsage, fmt.Errorf("unknown command %q (%s)", args[0], hint)
	})
}

// loadArg loads the policy file named by the first of n arguments. An error means that
// the command cannot be carried out.
func loadArg(args []string, n int, usage string) (*site.Site, policyfile.Diagnostics, error) {
	if len(args) != n {
		return nil, nil, argumentsError(args, usage)
	}
	return load(args[0], os.Stdin)
}

// load loads a policy file, or what stdin has for "-". An error means that it cannot
// be read.
func load(name string, stdin io.Reader) (*site.Site, policyfile.Diagnostics, error) {
	data, err := policyinput.ReadFile(name, stdin)
	if err != nil {
		return nil, nil, err
	}
	s, ds := site.Load(fileName(name), data, robotsserve.ServeOptions{})
	return s, ds, nil
}

// fileName is what messages call a file.
func fileName(name string) string {
	if name == "-" {
		return "<stdin>"
	}
	return name
}

// readFile reads a file, or the standard input for "-".
func readFile(name string) ([]byte, error) { return policyinput.ReadFile(name, os.Stdin) }

func exitCode(ds policyfile.Diagnostics) int {
	if ds.HasErrors() {
		return ExitPolicyError
	}
	return caddy.ExitCodeSuccess
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// colored reports whether to use colors on w: on a terminal, unless the user has
// turned them off (https://no-color.org).
func colored(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && os.Getenv("NO_COLOR") == "" && term.IsTerminal(int(f.Fd()))
}

// argumentsError is the error for a wrong number of arguments.
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
