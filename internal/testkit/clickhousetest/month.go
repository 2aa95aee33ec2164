// SPDX-License-Identifier: Apache-2.0

package clickhousetest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity/store/clickhouse"
)

// Rows holds the numbers of rows that FillMonth makes for each server and each hour or day.
type Rows struct {
	Hour, Day         int // rows for each hour and for each day
	PathHour, PathDay int // rows with a path for each hour and for each day
}

// crawlers are the crawlers of a made-up month, with their categories.
var crawlers = [][2]string{
	{"Googlebot", "search"},
	{"Bingbot", "search"},
	{"GPTBot", "ai-training"},
	{"CCBot", "ai-training"},
	{"ClaudeBot", "ai-training"},
	{"AhrefsBot", "seo"},
	{"SemrushBot", "seo"},
	{"Applebot", "search"},
	{"Amazonbot", "ai-training"},
	{"facebookexternalhit", "preview"},
	{"PetalBot", "search"},
	{"YandexBot", "search"},
	{"Bytespider", "ai-training"},
	{"DuckDuckBot", "search"},
	{"OAI-SearchBot", "ai-search"},
	{"PerplexityBot", "ai-search"},
	{"curl", "unlisted"},
	{"python-requests", "unlisted"},
	{"MJ12bot", "seo"},
	{"DataForSeoBot", "seo"},
}

// FillMonth fills the tables of a fleet with made-up rows for the 30 days that end at until. The tables with totals for
// each day get rows for all 30 days. The tables with totals for each hour get rows only for the last three days,
// because the console's pages do not read older rows of these tables.
func FillMonth(t testing.TB, c *clickhouse.Client, nodes int, n Rows, until time.Time) {
	t.Helper()
	today := until.Unix() / 86400
	names, kinds := make([]string, len(crawlers)), make([]string, len(crawlers))
	for i, c := range crawlers {
		names[i], kinds[i] = clickhouse.Quote(c[0]), clickhouse.Quote(c[1])
	}
	pick := func(of string, values ...string) string {
		return fmt.Sprintf("arrayElement([%s], toUInt32(%s %% %d) + 1)", strings.Join(values, ", "), of, len(values))
	}
	// fill inserts the rows of one table. It inserts a given number of rows for each server and each hour or day. In the
	// statement, "row" numbers these rows, beginning with 0.
	var fill func(table, bucket string, first, buckets int64, rows int, path string)
	fill = func(table, bucket string, first, buckets int64, rows int, path string) {
		if most := max(1, 500_000/int64(rows*nodes)); buckets > most { // a statement must not take a minute
			fill(table, bucket, first+most, buckets-most, rows, path)
			buckets = most
		}
		columns, text := "", ""
		if path != "" {
			columns, text = ", path", ", "+path
		}
		statement := fmt.Sprintf(`INSERT INTO %s (server_name, store, row_key, revision, host, crawler, identity, decision, rule, policy%s, %s, requests, bytes, violations, queries, unread)
SELECT concat('server-', toString(server)), server + 1, cityHash64(server, at, row), 1, %s, %s, %s, %s, if(row %% 3 = 0, 'no AI training', ''), '0123456789ab'%s,
	toUInt32(at), 1 + hash %% 40, hash %% 100000, if(row %% 7 = 0, hash %% 5, 0), 0, hash %% 2
FROM (SELECT intDiv(number, %d) %% %d AS server, %d + intDiv(number, %d) AS at, number %% %d AS row, cityHash64(number) AS hash FROM numbers(%d))`,
			table, columns, bucket, pick("intDiv(row, 20)", "'www.example.com'", "'news.example.com'", "'shop.example.com'"), pick("row", names...), pick("intDiv(row, 7)", "'verified'", "'unverified'", "'verified'", "'impostor'"),
			pick("intDiv(row, 3)", "'allowed'", "'allowed'", "'blocked'", "'disallowed'"), text,
			rows, nodes, first, rows*nodes, rows, int64(rows*nodes)*buckets)
		if err := c.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	const path = "concat('/section-', toString(row % 40), '/a-page-with-a-name-', toString(row), '.html')"
	fill("days", "day", today-29, 30, n.Day, "")
	fill("hours", "hour", today*24-48, 72, n.Hour, "")
	fill("path_days", "day", today-29, 29, n.PathDay, path)
	fill("path_hours", "hour", today*24-48, 72, n.PathHour, path)
	for _, statement := range []string{
		fmt.Sprintf("INSERT INTO servers (server_name, store, revision, rolled, last, behind) SELECT concat('server-', toString(number)), number + 1, 1, %d, %d, 0 FROM numbers(%d)", today-1, today*24+23, nodes),
		fmt.Sprintf("INSERT INTO crawlers (server_name, store, row_key, revision, crawler, category, first, last) SELECT concat('server-', toString(intDiv(number, 20))), intDiv(number, 20) + 1, number, 1, %s, %s, %d, %d FROM numbers(%d)",
			pick("number", names...), pick("number", kinds...), (today-29)*86400, today*86400, 20*nodes),
	} {
		if err := c.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
}
