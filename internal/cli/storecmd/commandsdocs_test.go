// SPDX-License-Identifier: Apache-2.0

package storecmd

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/robotspolicy/caddy-robots-policy/internal/cli"
)

var update = flag.Bool("update", false, "rewrite docs/reference/commands.md")

// TestCommandsPage compares docs/reference/commands.md with the commands of the code.
func TestCommandsPage(t *testing.T) {
	const name, mark = "../../../docs/reference/commands.md", "<!-- commands -->\n"
	page, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	head, _, ok := strings.Cut(string(page), mark)
	if !ok {
		t.Fatalf("%s has no %s", name, mark)
	}
	all := cli.Commands()
	slices.SortFunc(all, func(a, b *cobra.Command) int { return strings.Compare(a.Name(), b.Name()) })
	var b strings.Builder
	b.WriteString(head + mark)
	for _, c := range all {
		describeCommand(&b, "", c)
	}
	want := strings.TrimRight(b.String(), "\n") + "\n"
	if string(page) == want {
		return
	}
	if !*update {
		t.Fatalf("%s is out of date: go test ./internal/cli/storecmd -run TestCommandsPage -update", name)
	}
	if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// describeCommand writes the description of a command and of its subcommands.
func describeCommand(b *strings.Builder, parent string, c *cobra.Command) {
	if c.Short == "" {
		panic(c.Name() + " has no description")
	}
	fmt.Fprintf(b, "\n### %s\n\n`%s%s`: %s.\n", parent+c.Name(), parent, c.Use, c.Short)
	var common []string // flags that are explained at the beginning of the page
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if slices.Contains([]string{"adapter", "config", "json"}, f.Name) {
			f.Hidden = true
			common = append(common, "`--"+f.Name+"`")
		}
	})
	if flags := c.LocalFlags().FlagUsages(); flags != "" {
		b.WriteString("\n```text\n" + flags + "```\n")
	}
	if common != nil {
		b.WriteString("\nAlso " + strings.Join(common, ", ") + ".\n")
	}
	for _, sub := range c.Commands() {
		describeCommand(b, parent+c.Name()+" ", sub)
	}
}
