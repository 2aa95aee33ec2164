// SPDX-License-Identifier: Apache-2.0

package console

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity/store"
	"github.com/robotspolicy/caddy-robots-policy/activity/store/clickhouse"
	"github.com/robotspolicy/caddy-robots-policy/integration_test/internal/caddytest"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit/clickhousetest"
)

// differs matches the parts of a page that are different in each response, such as tokens and times. The test removes
// them before it compares pages.
var differs = regexp.MustCompile(`name="token" value="[^"]*"|nonce="[^"]*"|nonce-[A-Za-z0-9+/=_-]+|\d\d:\d\d(:\d\d)?|\d+ (seconds?|minutes?) ago`)

// The pages show the same data from ClickHouse as from the activity database of the server. With ClickHouse, the Health
// page also lists the servers of the fleet.
func TestPagesOnBothEngines(t *testing.T) {
	testkit.Nightly(t)
	server := clickhousetest.Start(t)
	n := open(t, policyText, "")
	pages := []string{
		"", "?days=1", "?days=30", "?host=news.example.com", "who-may", "who-may?host=www.example.com", "who-came", "who-came?days=30", "who-came?days=1",
		"crawler?name=GPTBot", "crawler?name=Googlebot&days=30", "ask?agent=GPTBot&url=https://www.example.com/premium/", "published", "published?all=1",
	}
	read := func(page string) string {
		t.Helper()
		resp, err := http.Get(n.console + page)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s, %v\n%s", page, resp.Status, err, text)
		}
		return differs.ReplaceAllString(string(text), "")
	}
	settled()
	before := map[string]string{}
	for _, page := range pages {
		before[page] = read(page)
	}

	admin := clickhouse.Client{URL: server.URL("default")}
	if err := admin.Exec(t.Context(), "CREATE DATABASE robots"); err != nil {
		t.Fatal(err)
	}
	if out, err := caddytest.Command(n.dir, "robots-policy", "activity-schema", server.URL("robots"), "--apply").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	password := filepath.Join(n.dir, "password")
	if err := os.WriteFile(password, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	n.load(fmt.Sprintf("activity %s {\n\tfleet_database %s {\n\t\tconsole_user reader\n\t\tconsole_password_file %s\n\t\tevery 1s\n\t}\n\tname web-1\n}", filepath.Join(n.dir, "activity"), server.URL("robots"), password), "")
	fleet := store.FleetReader{Client: clickhouse.Client{URL: server.URL("robots")}}
	eventually(t, "all was sent", func() bool {
		nodes, err := fleet.Nodes(t.Context())
		return err == nil && len(nodes) == 1 && nodes[0].Name == "web-1" && nodes[0].Behind == 0
	})
	settled()
	for _, page := range pages {
		if got := read(page); got != before[page] {
			t.Errorf("%q differs:\n%s", page, firstDifference(before[page], got))
		}
		link := page + "?server=web-1"
		if strings.Contains(page, "?") {
			link = page + "&server=web-1"
		}
		if !strings.Contains(page, "ask") && !strings.Contains(page, "published") && !strings.HasPrefix(page, "who-may") && !strings.Contains(read(link), "only requests that the server web-1 received") {
			t.Errorf("%s does not say that it is about one server", link)
		}
	}
	if page := read("health"); !strings.Contains(page, "Servers of the fleet") || !strings.Contains(page, "web-1") || strings.Contains(page, "Silent") {
		t.Errorf("Health does not show the fleet:\n%s", page)
	}
	server.Kill()
	if page := read("health"); !strings.Contains(page, "ClickHouse does not answer") {
		t.Errorf("Health does not say that ClickHouse is unavailable:\n%s", page)
	}
}

// eventually waits until ok returns true, at most two minutes.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not true after two minutes: %s", what)
		}
	}
}

func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return fmt.Sprintf("line %d\n%.1500s\n%.1500s", i, x[i], y[i])
		}
	}
	return fmt.Sprintf("%d and %d lines", len(x), len(y))
}

var fleetNodes = flag.String("fleet-nodes", "3", "of how many servers a made-up month is, several separated by commas")

// TestPagesOfAMonthOfAFleet loads the pages with a month of data of a fleet, and logs the time that each page took.
func TestPagesOfAMonthOfAFleet(t *testing.T) {
	testkit.Nightly(t)
	for number := range strings.SplitSeq(*fleetNodes, ",") {
		nodes, err := strconv.Atoi(number)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(number, func(t *testing.T) { pagesOfAMonth(t, nodes) })
	}
}

func pagesOfAMonth(t *testing.T, nodes int) {
	server := clickhousetest.Start(t)
	c := clickhouse.Client{URL: server.URL("default")}
	for _, statement := range append([]string{"CREATE DATABASE robots"}, store.FleetSchema()...) {
		if err := c.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
		c.URL = server.URL("robots")
	}
	rows := clickhousetest.Rows{Hour: 150, Day: 200, PathHour: 600, PathDay: 3000}
	began := time.Now()
	clickhousetest.FillMonth(t, &c, nodes, rows, time.Now())
	t.Logf("%d servers, filled in %s", nodes, time.Since(began).Round(time.Second))
	eventually(t, "ClickHouse has merged what was inserted", func() bool {
		merges := ""
		err := c.Query(t.Context(), "SELECT count() FROM system.merges", func(f []string) error { merges = f[0]; return nil })
		return err == nil && merges == "0"
	})
	for _, table := range []string{"hours", "days", "path_hours", "path_days"} {
		if err := c.Query(t.Context(), "SELECT sum(rows), sum(bytes), count() FROM system.parts WHERE active AND database = 'robots' AND table = "+clickhouse.Quote(table), func(f []string) error {
			t.Logf("%s: %s rows, %s bytes, %s parts", table, f[0], f[1], f[2])
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	n := prepare(t, policyText)
	n.load(fmt.Sprintf("activity %s {\n\tfleet_database %s\n\tname pages\n}", filepath.Join(n.dir, "activity"), server.URL("robots")), "")
	settled()
	for _, page := range []string{
		"", "?days=30", "?days=1", "who-may", "who-came", "who-came?days=30", "crawler?name=GPTBot", "crawler?name=Googlebot&days=30",
		"ask?agent=GPTBot&url=https://www.example.com/section-1/", "published", "health",
	} {
		began, cpu := time.Now(), server.CPU()
		resp, err := http.Get(n.console + page)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s, %v\n%s", page, resp.Status, err, text)
		}
		t.Logf("%-40q %5d ms, %5d ms of ClickHouse's processor", page, time.Since(began).Milliseconds(), (server.CPU() - cpu).Milliseconds())
		time.Sleep(3500 * time.Millisecond) // wait, because answers are cached for three seconds
	}
}
