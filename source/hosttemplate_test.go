// SPDX-License-Identifier: Apache-2.0

package source

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestCleanHost(t *testing.T) {
	for host, want := range map[string]string{
		"example.com": "example.com", "WWW.Example.COM:8080": "www.example.com", "example.com.": "example.com",
		"bücher.example": "xn--bcher-kva.example", "192.0.2.1": "192.0.2.1", "a-b.example": "a-b.example",
		"": "", ".": "", "..": "", "../../etc/passwd": "", "a/b": "", `a\b`: "", "a\x00b": "", "%2e%2e": "", "a..b": "", ".a": "",
		"-a.example": "", "a_b.example": "", "[::1]:80": "", "a b": "", "{host}": "", "*.example.com": "", "~": "", "con:80:80": "con",
		strings.Repeat("a", 64): "", strings.Repeat("a.", 200) + "a": "", strings.Repeat("a", 1<<20): "",
	} {
		if got, ok := cleanHost(host); got != want && ok || ok != (want != "") {
			t.Errorf("%.40q: %q %t, want %q", host, got, ok, want)
		}
	}
}

func FuzzCleanHost(f *testing.F) {
	for _, s := range []string{"example.com", "../x", "BÜCHER.example:1", "a\x00", "xn--a", "..", "[::1]"} {
		f.Add(s)
	}
	template, err := parseHostTemplate("/etc/policies/{labels.0}/{host}.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, s string) {
		host, ok := cleanHost(s)
		if !ok {
			return
		}
		if again, ok := cleanHost(host); !ok || again != host {
			t.Errorf("%q becomes %q, and that %q", s, host, again)
		}
		file, ok := expand(template, host)
		if !ok {
			t.Fatalf("%q: %q", host, file)
		}
		if dir, name := filepath.Split(file); strings.ContainsAny(file, "\\\x00") || strings.Contains(file, "..") ||
			strings.Count(dir, "/") != 1 || name != host+".yaml" || !filepath.IsLocal(file) {
			t.Errorf("%q: %q", s, file)
		}
	})
}

func TestHostTemplate(t *testing.T) {
	for name, want := range map[string]string{
		"/etc/policies/{host}.yaml":                                  "/etc/policies/ www.example.com.yaml",
		"/etc/policies/{http.request.host}.yaml":                     "/etc/policies/ www.example.com.yaml",
		"/srv/{http.request.host.labels.1}.d/{labels.2}/policy.yaml": "/srv/ example.d/www/policy.yaml",
		"/srv/{labels.9}.yaml":                                       "/srv/ none",
	} {
		template, err := parseHostTemplate(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		file, ok := expand(template, "www.example.com")
		if !ok {
			file = "none"
		}
		if got := template.dir + " " + file; got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	for _, name := range []string{
		"/etc/{path}.yaml", "/etc/{http.request.uri}", "/etc/{host", "/etc/host}{host}", "/{host}", "/etc/{labels.x}", "/etc/{http.request.header.X}",
		"/etc/{host}/../policy.yaml",
	} {
		if template, err := parseHostTemplate(name); err == nil {
			t.Errorf("%s: %+v", name, template)
		}
	}
}

func expand(t *hostTemplate, host string) (string, bool) {
	file, ok := t.appendFile(nil, host)
	return string(file), ok
}
