// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The function readList reads names from lists in different formats, and ignores all other data in them.
func TestReadList(t *testing.T) {
	for name, tt := range map[string]struct {
		data, field string
		want        []string
		says        string // the expected error
	}{
		"strings":               {`["B/1", "A"]`, "", []string{"A", "B/1"}, ""},
		"objects":               {`[{"ua":"A","x":["no"]},{"ua":"B"},{"other":"no"}]`, "ua", []string{"A", "B"}, ""},
		"nested lists":          {`[{"i":{"accepted":["A","B"]}},{"i":{"accepted":[]}}]`, "i.accepted", []string{"A", "B"}, ""},
		"a list of objects":     {`[{"i":[{"value":"A"},{"value":"B"}]}]`, "i.value", []string{"A", "B"}, ""},
		"by name":               {`{"A":{"f":"no"},"B":{}}`, "", []string{"A", "B"}, ""},
		"a field, for name":     {`{"x":{"ua":"A"},"y":{"ua":"A"}}`, "ua", []string{"A"}, ""},
		"lines":                 {"# a list\nMozilla/5.0 (compatible; A/1; +https://a.example)\r\n\n B/2 \n", "", []string{"Mozilla/5.0 (compatible; A/1; +https://a.example)", "B/2"}, ""},
		"lines like YAML":       {"A: b\nB\n", "", []string{"A: b", "B"}, ""},
		"device-detector":       {"###\n- regex: 'A(?:bot)?'\n  name: 'A bot'\n  producer:\n    name: 'no'\n- regex: 'B'\n  name: \"B\"\n", "name", []string{"A bot", "B"}, ""},
		"YAML strings":          {"- A\n- B/1\n", "", []string{"A", "B/1"}, ""},
		"objects, no field":     {`[{"ua":"A","tags":[]}]`, "", nil, "--field, give the name of the field that contains the User-Agents; the first entry has these fields: tags and ua"},
		"another field":         {`[{"ua":"A"}]`, "name", nil, "--field, give the name of the field that contains the User-Agents; the first entry has these fields: ua"},
		"a field of lines":      {"A\nB\n", "name", nil, "leave --field out"},
		"broken JSON":           {`[{"ua":`, "ua", nil, "invalid JSON"},
		"numbers":               {`[1,2]`, "", nil, "--field"},
		"nothing":               {"", "", nil, ""},
		"a string that is JSON": {`["[1]"]`, "", []string{"[1]"}, ""},
	} {
		got, err := readList([]byte(tt.data), tt.field)
		if !slices.Equal(got, tt.want) || (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestCheckAgainst(t *testing.T) {
	list := filepath.Join(t.TempDir(), "list.txt")
	if err := os.WriteFile(list, []byte("GPTBot/1.2\nGooglebot\nMozilla/5.0 (compatible; UnheardBot/1)\nQuietly\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const policy = "version: 1\nrules:\n  - for: category:ai-training\n    disallow: {crawl: /}\n"
	out, _, err := runCheck(t, policy, "-", "--against", list)
	want := "compared with the list " + list + `: the catalog has 2 of the 4 names in the list
  may not crawl: 1 name: GPTBot/1.2
  may crawl:     1 name: Googlebot
  unlisted:      1 name: Mozilla/5.0 (compatible; UnheardBot/1)
  not seen:      1 name: Quietly
`
	if err != nil || !strings.HasSuffix(out, want) {
		t.Errorf("%v\n%s\nwant at the end\n%s", err, out, want)
	}
	out, _, err = runCheck(t, policy, "-", "--against", list, "--json")
	var report struct {
		Policies []struct{ Against comparedList }
	}
	if err != nil || json.Unmarshal([]byte(out), &report) != nil || !slices.Equal(report.Policies[0].Against.Missed, []string{"Quietly"}) {
		t.Errorf("%v\n%s", err, out)
	}
	if _, _, err := runCheck(t, policy, "-", "--against", list+"x"); err == nil {
		t.Error("a list that is missing is no error")
	}
}

func FuzzReadList(f *testing.F) {
	f.Add([]byte("- regex: 'A'\n  name: 'A bot'\n"), "name")
	f.Add([]byte(`{"x":{"ua":"A"}}`), "ua")
	f.Add([]byte("A\n"), "")
	f.Fuzz(func(t *testing.T, data []byte, field string) {
		if all, err := readList(data, field); err == nil && slices.Contains(all, "") {
			t.Errorf("%q", all)
		}
	})
}
