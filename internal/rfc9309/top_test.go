// SPDX-License-Identifier: Apache-2.0

package rfc9309

import (
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Thousands of names share thousands of preferences without copies, to save memory. No Allow or Disallow line separates
// the User-agent lines of these names, so all of them belong to the same block. A name has all preferences after its
// own User-agent line, but none of the preferences before this line.
func TestPreferencesOfManyNames(t *testing.T) {
	var b strings.Builder
	for i := range 3000 {
		b.WriteString("User-agent: bot" + strings.Repeat("x", i%50) + strings.Repeat("y", i/50) + "\nContent-Usage: /" + strconv.Itoa(i) + " search=n\n")
	}
	for i := range 3000 {
		b.WriteString("Content-Usage: /z" + strconv.Itoa(i) + " train-ai=n\n")
	}
	b.WriteString("Disallow: /\nUser-agent: other\nDisallow: /\n")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f := Parse([]byte(b.String()), nil)
	runtime.ReadMemStats(&after)
	if mib := (after.TotalAlloc - before.TotalAlloc) >> 20; mib > 32 {
		t.Errorf("a file of %d KiB takes %d MiB", b.Len()>>10, mib)
	}
	for _, q := range []struct{ name, usage, path, want string }{
		{"bot", "search", "/0", "no"}, {"botx", "search", "/0", ""}, {"botx", "search", "/1", "no"}, {"bot", "search", "/1", "no"},
		{"botx", "train-ai", "/z7", "no"}, {"other", "train-ai", "/z7", ""},
	} {
		if got := f.of(Crawler{Names: []string{q.name}}).ask(question{usage: q.usage, path: q.path}).Preference; got != q.want {
			t.Errorf("%s of %s for %s: %q, want %q", q.usage, q.path, q.name, got, q.want)
		}
	}
}

// A preference above the first group applies to each group, unless the group states a preference about the same usage
// and path. To save memory, groups do not copy these preferences.
func TestPreferencesAboveManyGroups(t *testing.T) {
	var b strings.Builder
	b.WriteString("Content-Usage: " + strings.Repeat("use=x"+",", 1000) + "train-ai=n\n")
	for i := range 1000 {
		b.WriteString("Content-Usage: /" + strconv.Itoa(i) + " search=n\n")
	}
	for i := range 2000 {
		b.WriteString("User-agent: bot" + strings.Repeat("x", i%50) + strings.Repeat("y", i/50) + "\nContent-Usage: /7 search=y\nDisallow: /a\n")
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f := Parse([]byte(b.String()), nil)
	runtime.ReadMemStats(&after)
	if mib := (after.TotalAlloc - before.TotalAlloc) >> 20; mib > 16 {
		t.Errorf("a file of %d KiB takes %d MiB", b.Len()>>10, mib)
	}
	bot := f.of(Crawler{Names: []string{"botx"}})
	for _, q := range []struct{ usage, path, want string }{
		{"search", "/6", "no"}, {"search", "/7", "yes"}, {"train-ai", "/x", "no"}, {"search", "/x", ""},
	} {
		if got := bot.ask(question{usage: q.usage, path: q.path}).Preference; got != q.want {
			t.Errorf("%s of %s: %q, want %q", q.usage, q.path, got, q.want)
		}
	}
}

// All members of a line share its path, although both can be long.
func TestPathOfManyPreferences(t *testing.T) {
	var members []string
	for i := range 1500 {
		members = append(members, "use="+strconv.Itoa(i))
	}
	line := "Content-Usage: /" + strings.Repeat("*", 7000) + "a " + strings.Join(members, ",") + "\n"
	text := "User-agent: *\n" + strings.Repeat(line, 5)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f := Parse([]byte(text), nil)
	runtime.ReadMemStats(&after)
	if mib := (after.TotalAlloc - before.TotalAlloc) >> 20; mib > 16 {
		t.Errorf("a file of %d KiB takes %d MiB", len(text)>>10, mib)
	}
	if got := f.of(Crawler{}).ask(question{usage: "use", path: "/xa"}); got.Written != "use=0" || got.Line != 2 {
		t.Errorf("%+v", got)
	}
}

// A preference above the first group does not apply to a name if a line below the name's own User-agent line states
// another one for the same path.
func TestPreferencesAboveNamesThatShareABlock(t *testing.T) {
	f := Parse([]byte("Content-Usage: /7 search=n\nUser-agent: x\nContent-Usage: /7 search=y\nUser-agent: y\nDisallow: /a\n"), nil)
	for name, want := range map[string]string{"x": "yes", "y": "no", "z": "no"} {
		if got := f.of(Crawler{Names: []string{name}}).ask(question{usage: "search", path: "/7"}).Preference; got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// Compare asks once for names with the same lines, and reports one difference for all of them.
func TestNamesWithTheSameLinesAreOneDifference(t *testing.T) {
	old := Parse([]byte("User-agent: a\nUser-agent: b\nDisallow: /x\n\nUser-agent: c\nDisallow: /x\n"), nil)
	c := Compare(old, Parse([]byte("User-agent: *\nDisallow:\n"), nil), nil)
	together := 0
	for _, d := range c.Differences {
		if slices.Contains(d.Crawlers, "a") != slices.Contains(d.Crawlers, "b") {
			t.Errorf("a difference is for %v", d.Crawlers)
		}
		if slices.Contains(d.Crawlers, "a") {
			together++
		}
	}
	if together == 0 {
		t.Error("no difference")
	}
}
