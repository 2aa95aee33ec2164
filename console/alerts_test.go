// SPDX-License-Identifier: Apache-2.0

package console

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/robotspolicy/caddy-robots-policy/claim"
)

// concluded lists all alerts and all panels of the dashboard. For each, it has the claim that the alert or panel shows,
// or the reason why it does not show a claim.
var concluded = map[string]struct{ claim, why string }{
	"RobotsPolicyBroken":                      {"", "the state of a source, which the source itself reports"},
	"RobotsPolicyUndoCost":                    {"search-keeps", "the source judges the claim when it loads an undo, and the metric is whether it failed"},
	"RobotsPolicyHostsBroken":                 {"", "a count of files with errors, which the source itself reports"},
	"RobotsPolicyNotLookedAt":                 {"", "a time; the alert compares it with the clock of Prometheus"},
	"RobotsPolicyFleetDiffers":                {"", "it compares servers, and each of them knows only itself"},
	"RobotsPolicyViolations":                  {"obeyed", "a claim about each crawler would be a series for each; the metric counts what makes the claim fail, by identity"},
	"RobotsPolicyAddressListFailing":          {"", "it names the list days before lists-current fails"},
	"RobotsPolicyListsOutOfDate":              {"lists-current", ""},
	"RobotsPolicyReverseDNSFailing":           {"", "a rate of failed lookups"},
	"RobotsPolicyKeyDirectoryFailing":         {"", "a rate of failed fetches"},
	"RobotsPolicyPartFailing":                 {"", "the state of a part, which the part itself reports"},
	"RobotsPolicyEvidenceError":               {"", "a time at which something went wrong, with its reason; evidence-whole is another alert"},
	"RobotsPolicyEvidenceChanged":             {"evidence-whole", ""},
	"RobotsPolicyEvidencePutBack":             {"evidence-last", ""},
	"RobotsPolicyRecordsLost":                 {"none-unrecorded", "the claim fails until a restart; the metric counts what makes it fail, and an alert ends"},
	"RobotsPolicyTotalsIncomplete":            {"none-unrecorded", ""},
	"RobotsPolicyEmbeddedListsExpire":         {"", "a time; lists-current fails later"},
	"RobotsPolicySearchEngineShutOut":         {"", "it looks at disallowed requests of the last hour too, without the console and its database; none-blocked-unmeant asks about blocked ones"},
	"RobotsPolicyAuditErrors":                 {"audit-clean", "the metric is the number of errors of the claim, and -1 if it cannot be judged"},
	"RobotsPolicyCatalogOld":                  {"", "a time"},
	"RobotsPolicyFleetDatabaseBehind":         {"sent-all", ""},
	"RobotsPolicyServerMissing":               {"", "servers report each other; no claim is about it"},
	"RobotsPolicyBlockingSwitchedOff":         {"", "the state of a switch"},
	"RobotsPolicyAuditStopped":                {"", "a time"},
	"panel: Policies":                         {"", "the state of a source"},
	"panel: Served since":                     {"", "a time"},
	"panel: Changes of policies":              {"", "a count"},
	"panel: Warnings":                         {"", "a count"},
	"panel: Hosts with a policy of their own": {"", "a count"},
	"panel: Blocked and allowed crawlers":     {"", "a rate of requests"},
	"panel: robots.txt read":                  {"", "a rate of requests"},
	"panel: Violations of robots.txt":         {"obeyed", "a count, by identity, as in the alert"},
	"panel: Verified and impostors":           {"", "a rate of requests by identity"},
	"panel: Policy version of each server":    {"", "a table of hashes"},
	"panel: Age of the address lists":         {"", "a time"},
	"panel: Fetches for verification":         {"", "a rate of fetches"},
	"panel: Claims and how they were judged":  {"", "it shows all claims that have a metric"},
}

// If the program makes a claim about the subject of an alert or panel, such as lost requests, the alert or panel uses
// the metric of this claim.
func TestAlertsShowClaims(t *testing.T) {
	asked := map[string]string{}
	var alerts struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	for name, read := range map[string]func([]byte) error{
		"../docs/alerts.yaml":            func(b []byte) error { return yaml.Unmarshal(b, &alerts) },
		"../docs/grafana-dashboard.json": func(b []byte) error { return json.Unmarshal(b, &dashboard) },
	} {
		text, err := os.ReadFile(name)
		if err == nil {
			err = read(text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, g := range alerts.Groups {
		for _, r := range g.Rules {
			asked[r.Alert] = r.Expr
		}
	}
	for _, p := range dashboard.Panels {
		for _, x := range p.Targets {
			asked["panel: "+p.Title] += x.Expr
		}
	}
	for name, expr := range asked {
		c, ok := concluded[name]
		switch exists := slices.ContainsFunc(claim.All(), func(r claim.Registered) bool { return r.Name == c.claim }); {
		case !ok || c.claim == "" && c.why == "":
			t.Errorf("%s: which claim does it show, or why none?", name)
		case c.claim != "" && !exists:
			t.Errorf("%s: there is no claim %s", name, c.claim)
		case c.why == "" && !strings.Contains(expr, `claim="`+c.claim+`"`):
			t.Errorf("%s does not ask for the claim %s: %s", name, c.claim, expr)
		}
	}
	for name := range concluded {
		if asked[name] == "" {
			t.Errorf("there is no %s", name)
		}
	}
}
