// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	"github.com/robotspolicy/caddy-robots-policy/crawlers/identity"
	"github.com/robotspolicy/caddy-robots-policy/site"
)

// configuredMethods returns the verification methods of the handlers in a configuration, without duplicates. Without a
// configuration, it returns the default methods.
func configuredMethods(config, adapter string) (all []identity.Methods, err error) {
	values := [][]string{nil}
	if config != "" {
		data, _, _, err := caddycmd.LoadConfig(config, adapter)
		if err != nil {
			return nil, err
		}
		var tree any
		if err := json.Unmarshal(data, &tree); err != nil {
			return nil, fmt.Errorf("--config %s: %w", config, err)
		}
		if values = verifyValues(tree); len(values) == 0 {
			return nil, fmt.Errorf("--config %s: no site in it has the directive robots_policy", config)
		}
	}
	seen := map[string]bool{}
	for _, names := range values {
		if key := strings.Join(names, " "); seen[key] {
			continue
		} else {
			seen[key] = true
		}
		m, err := identity.ParseMethods(names, nil)
		if err != nil {
			return nil, fmt.Errorf("--config %s: %w", config, err)
		}
		all = append(all, m)
	}
	return all, nil
}

// verifyValues returns the values of the option "verify" for each handler in a configuration.
func verifyValues(tree any) (all [][]string) {
	for _, h := range handlersIn(nil, tree) {
		values, _ := h["verify"].([]any)
		names := make([]string, 0, len(values))
		for _, v := range values {
			names = append(names, fmt.Sprint(v))
		}
		all = append(all, names)
	}
	return all
}

// handlersIn collects the robots_policy handlers of a configuration.
func handlersIn(all []map[string]any, node any) []map[string]any {
	switch node := node.(type) {
	case []any:
		for _, n := range node {
			all = handlersIn(all, n)
		}
	case map[string]any:
		if node["handler"] == "robots_policy" {
			all = append(all, node)
		}
		for _, n := range node {
			all = handlersIn(all, n)
		}
	}
	return all
}

// lacksOf returns the proofs of identity that a policy demands and the methods cannot provide, without duplicates.
func lacksOf(s *site.Site, methods []identity.Methods) (all []identity.Lack) {
	for _, m := range methods {
		for _, l := range m.Lacks(s.File.Name, s.Policy.Spec(), s.File.Catalog) {
			if !slices.ContainsFunc(all, func(o identity.Lack) bool { return o.Why == l.Why }) {
				all = append(all, l)
			}
		}
	}
	return all
}

// writeLacks prints the proofs of identity that the policy demands and the configuration cannot provide.
func writeLacks(out io.Writer, lacks []identity.Lack, config string) error {
	if len(lacks) == 0 {
		return nil
	}
	of := config
	if config == "" {
		of = "the default, \"verify embedded\"; to check the settings of a Caddyfile, name it with --config"
	}
	_, err := fmt.Fprintf(out, "  the policy needs identity checks that the server does not make (settings: %s):\n", of)
	for _, l := range lacks {
		where := ""
		if len(l.Rules) > 0 {
			where = " (" + strings.Join(l.Rules, ", ") + ")"
		}
		if err == nil {
			_, err = fmt.Fprintf(out, "    %s%s\n", l.Message(), where)
		}
	}
	return err
}
