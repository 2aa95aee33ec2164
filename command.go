// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"os"
	"time"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/robotspolicy/caddy-robots-policy/policy"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

func init() {
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:  "robots-policy",
		Usage: "check|render|explain|import|schema|publish|crawlers ...",
		Short: "Checks and explains the policy files of robots_policy",
		Long: `
Works on a policy file as the robots_policy directive takes it, without a
running server.

Each command exits with 0 if all is well, with 1 if the policy file has an error
and with 2 if the command cannot be carried out as it was given.`,
		CobraFunc: func(cmd *cobra.Command) {
			refuseUnknown(cmd)
			cmd.AddCommand(checkCommand(), renderCommand(), explainCommand(), importCommand(), schemaCommand(), publishCommand(), crawlersCommand())
		},
	})
}

// The exit codes of the commands beside 0.
const (
	exitPolicyError = 1
	exitUsage       = 2
)

var errPolicy = errors.New("the policy file has errors")

// command makes a cobra command of a function that gives an exit code. An error
// of it is the user's to mend, and is told as it stands.
func command(use, short string, run func(cmd *cobra.Command, args []string) (int, error)) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, SilenceErrors: true, SilenceUsage: true}
	answerWith(cmd, run)
	return cmd
}

// answerWith makes a command exit as command says.
func answerWith(cmd *cobra.Command, run func(cmd *cobra.Command, args []string) (int, error)) {
	exit := func(code int, err error) error {
		if err != nil {
			fmt.Fprintf(cmd.ErrOrStderr(), "%s: %v\n", cmd.CommandPath(), err)
		}
		switch code {
		case caddy.ExitCodeSuccess:
			return nil
		case exitPolicyError:
			return errPolicy // Caddy exits with 1
		}
		return caddycmd.WrapCommandFuncForCobra(func(caddycmd.Flags) (int, error) { return code, nil })(cmd, nil)
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return exit(exitUsage, err) })
	cmd.RunE = func(_ *cobra.Command, args []string) error { return exit(run(cmd, args)) }
}

// refuseUnknown has the parent of the commands refuse what is none of them: a
// script with a slip in it must not go on as if the policy had been checked.
func refuseUnknown(parent *cobra.Command) {
	parent.SilenceErrors, parent.SilenceUsage = true, true
	parent.SuggestionsMinimumDistance = 2
	answerWith(parent, func(cmd *cobra.Command, args []string) (int, error) {
		if len(args) == 0 {
			cmd.SetOut(cmd.ErrOrStderr())
			return exitUsage, cmd.Help()
		}
		hint := "see --help"
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			hint = fmt.Sprintf("did you mean %q?", near[0])
		}
		return exitUsage, fmt.Errorf("there is no command %q (%s)", args[0], hint)
	})
}

func checkCommand() *cobra.Command {
	var asJSON bool
	cmd := command("check FILE", "Says everything that is wrong with a policy file, and what its author may regret",
		func(cmd *cobra.Command, args []string) (int, error) {
			_, ds, err := loadArg(args, 1, "FILE")
			if err != nil {
				return exitUsage, err
			}
			out := cmd.OutOrStdout()
			if asJSON {
				err = writeJSON(out, append(policyfile.Diagnostics{}, ds...)) // never null
			} else {
				err = ds.Write(out, colored(out))
				if err == nil && len(ds) == 0 {
					_, err = fmt.Fprintf(out, "%s: no errors and no warnings\n", args[0])
				}
			}
			return exitCode(ds), err
		})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the diagnostics as JSON")
	return cmd
}

func renderCommand() *cobra.Command {
	var host, other string
	cmd := command("render FILE", "Prints the robots.txt that is served under a policy file",
		func(cmd *cobra.Command, args []string) (int, error) {
			s, ds, err := loadArg(args, 1, "FILE")
			if err != nil {
				return exitUsage, err
			}
			if cmd.Flags().Changed("host") {
				h, err := policy.ParseHost(host)
				if err != nil {
					return exitUsage, fmt.Errorf("--host %q: %w", host, err)
				}
				if h.Wildcard() {
					return exitUsage, fmt.Errorf("--host %q: give one host, such as www%s", host, h[1:])
				}
				host = string(h)
			}
			errOut := cmd.ErrOrStderr()
			if err := ds.Write(errOut, colored(errOut)); err != nil || s == nil {
				return exitCode(ds), err
			}
			f, _ := robotsserve.Render(s.Policy, host, robotsserve.Options{})
			if other != "" {
				if f, err = renderMerged(errOut, s.Policy, host, other); err != nil {
					return exitUsage, err
				}
			}
			_, err = cmd.OutOrStdout().Write(f.Body)
			return caddy.ExitCodeSuccess, err
		})
	cmd.Flags().StringVar(&other, "merge", "", "a robots.txt of the site behind, to be merged as with: robots_txt merge")
	cmd.Flags().StringVar(&host, "host", "", "the host to render for (default: one that no rule names)")
	return cmd
}

// renderMerged renders with the robots.txt of a file below, and says on w what of
// that is left out.
func renderMerged(w io.Writer, p *policy.Policy, host, name string) (*robotsserve.File, error) {
	data, err := readFile(name)
	if err != nil {
		return nil, err
	}
	f, problems, told := robotsserve.Merge(p, host, robotsserve.ParseOther(data), robotsserve.Options{})
	writeTold(w, name, told)
	for _, pr := range problems {
		if pr.Severity == policy.Error {
			return nil, fmt.Errorf("%s is not merged when robots.txt is served: %s", name, pr.Message)
		}
	}
	return f, nil
}

// writeTold writes what is to be told of a robots.txt, and of which line.
func writeTold(w io.Writer, name string, told []robotsserve.Told) {
	for _, t := range told {
		at := name
		if t.Line > 0 {
			at = fmt.Sprintf("%s:%d", name, t.Line)
		}
		fmt.Fprintf(w, "%s: %s\n", at, t.Message)
	}
}

func explainCommand() *cobra.Command {
	var agent, address string
	var asJSON bool
	cmd := command("explain FILE --agent AGENT URL", "Says what happens to a request in every channel, and which line of the policy file decides",
		func(cmd *cobra.Command, args []string) (int, error) {
			s, ds, err := loadArg(args, 2, "FILE --agent AGENT URL")
			if err != nil {
				return exitUsage, err
			}
			u, err := url.Parse(args[1])
			if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
				return exitUsage, fmt.Errorf("%q is no URL such as https://www.example.com/news/", args[1])
			}
			if agent == "" {
				return exitUsage, errors.New("who asks? --agent takes a User-Agent, or a product token such as GPTBot")
			}
			if s == nil {
				errOut := cmd.ErrOrStderr()
				return exitCode(ds), ds.Write(errOut, colored(errOut))
			}
			q := site.Question{Agent: agent, URL: u, Now: time.Now()}
			if cmd.Flags().Changed("address") {
				addr, err := netip.ParseAddr(address)
				if err != nil {
					return exitUsage, fmt.Errorf("--address %q is no IP address such as 192.0.2.1 or 2001:db8::1", address)
				}
				q.Verify = verifyByEmbedded(s, addr)
			}
			e := s.Explain(q)
			if asJSON {
				return caddy.ExitCodeSuccess, writeJSON(cmd.OutOrStdout(), e)
			}
			return caddy.ExitCodeSuccess, e.WriteText(cmd.OutOrStdout())
		})
	cmd.Flags().StringVar(&agent, "agent", "", "the User-Agent of the request, or a product token")
	cmd.Flags().StringVar(&address, "address", "", "the client's IP address: is it the crawler's, by the address lists that came with this program?")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the explanation as JSON")
	return cmd
}

func schemaCommand() *cobra.Command {
	return command("schema", "Prints the JSON Schema of policy files, for editors",
		func(cmd *cobra.Command, args []string) (int, error) {
			if len(args) > 0 {
				return exitUsage, errors.New("schema takes no arguments")
			}
			_, err := cmd.OutOrStdout().Write(policyfile.Schema())
			return caddy.ExitCodeSuccess, err
		})
}

// loadArg loads the policy file that the first of so many arguments names. The
// error is that of a command that cannot be carried out.
func loadArg(args []string, n int, usage string) (*site.Site, policyfile.Diagnostics, error) {
	if len(args) != n {
		return nil, nil, argumentsError(args, usage)
	}
	data, err := readFile(args[0])
	if err != nil {
		return nil, nil, err
	}
	s, ds := site.Load(args[0], data, robotsserve.ServeOptions{})
	return s, ds, nil
}

func exitCode(ds policyfile.Diagnostics) int {
	if ds.HasErrors() {
		return exitPolicyError
	}
	return caddy.ExitCodeSuccess
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// colored reports whether to colour what is written to w: a terminal, unless the
// user wants none (https://no-color.org).
func colored(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && os.Getenv("NO_COLOR") == "" && term.IsTerminal(int(f.Fd()))
}

// argumentsError says what a command takes that was given another number of arguments.
func argumentsError(args []string, usage string) error {
	got := fmt.Sprintf("%d arguments", len(args))
	switch len(args) {
	case 0:
		got = "nothing"
	case 1:
		got = fmt.Sprintf("%q alone", args[0])
	}
	return fmt.Errorf("it takes %s, and was given %s", usage, got)
}
