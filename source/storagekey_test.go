// SPDX-License-Identifier: Apache-2.0

package source

import (
	"strings"
	"testing"
)

func TestStorageKey(t *testing.T) {
	for name, want := range map[string]string{
		"storage:site.yaml": "site.yaml", "storage:robots_policy/site.yaml": "robots_policy/site.yaml", "storage:a/b/c": "a/b/c",
		"storage:robots_policy/last_goodish.yaml": "robots_policy/last_goodish.yaml", "storage:my/certificates": "my/certificates",
		"storage:": "", "storage:.": "", "storage:/etc/passwd": "", "storage:../x": "", "storage:a/../certificates/x": "", "storage:a//b": "", "storage:a/": "",
		`storage:a\b`: "", "storage:a\x00": "", "storage:certificates/x": "", "storage:acme": "", "storage:last_clean.json": "",
		"storage:robots_policy/last_good": "", "storage:robots_policy/last_good/x": "",
		"storage:robots_policy/crawlers.yaml": "", "storage:robots_policy/Crawlers.yaml": "",
		// On Windows and macOS, these keys lead to the same files as the reserved keys in lower case.
		"storage:Certificates/x": "", "storage:ACME/x": "", "storage:robots_policy/Last_Good/x": "",
	} {
		if got, err := StorageKey(name); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q %v, want %q", name, got, err, want)
		}
	}
}

func FuzzStorageKey(f *testing.F) {
	for _, s := range []string{"a/b.yaml", "../x", "/etc/passwd", "certificates/x", "a//b", ".", "a/../certificates"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		key, err := StorageKey(StoragePrefix + s)
		if err != nil {
			return
		}
		if strings.HasPrefix(key, "/") || strings.Contains("/"+key+"/", "/../") || strings.Contains("/"+key+"/", "/./") || strings.Contains(key, "//") {
			t.Errorf("%q", key)
		}
		for _, own := range caddysOwn {
			if folded := strings.ToLower(key); folded == own || strings.HasPrefix(folded, own+"/") {
				t.Errorf("%q is accepted, although Caddy uses this key", key)
			}
		}
	})
}
