// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"fmt"

	"github.com/caddyserver/caddy/v2"
	"github.com/spf13/cobra"

	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
)

func importCommand() *cobra.Command {
	return command("import ROBOTS.TXT", "Prints an existing robots.txt as a policy file",
		func(cmd *cobra.Command, args []string) (int, error) {
			if len(args) != 1 {
				return exitUsage, argumentsError(args, "ROBOTS.TXT")
			}
			data, err := readFile(args[0])
			if err != nil {
				return exitUsage, err
			}
			names, err := policyfile.NewNames()
			if err != nil {
				return exitUsage, err
			}
			spec, told := robotsserve.Import(data, robotsserve.ImportOptions{Name: names.Check, Crawlers: names.Crawlers()})
			writeTold(cmd.ErrOrStderr(), args[0], told)
			text := policyfile.PrintWith(spec, policyfile.PrintOptions{
				Header: "Made from " + args[0] + ". Look it over, then: caddy robots-policy check FILE",
			})
			if _, err = cmd.OutOrStdout().Write(text); err != nil {
				return exitUsage, err
			}
			// A robots.txt may name what a policy file takes for something else.
			_, ds := policyfile.Load("the policy file", text)
			if !ds.HasErrors() {
				return caddy.ExitCodeSuccess, nil
			}
			return exitPolicyError, fmt.Errorf("what was printed needs your hand before it loads:\n%w", ds)
		})
}
