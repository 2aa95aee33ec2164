// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/caddyserver/caddy/v2/modules/filestorage"

	"github.com/robotspolicy/caddy-robots-policy/crawlers"
	"github.com/robotspolicy/caddy-robots-policy/internal/caddyside/catalogstore"
)

// The command crawlers update accepts a signed catalog only if its signature is valid. The command diff shows how a new
// catalog changes the decisions of a policy.
func TestSignedCatalogCommands(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	public, err := runCrawlers(t, "export", "--new-key", path("key"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := runCrawlers(t, "export", "--new-key", path("key")); err == nil || strings.Contains(err.Error(), "init") {
		t.Errorf("a key was written over another, or the message is that of init: %v", err)
	}
	signed, err := runCrawlers(t, "export", "--sign", path("key"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := crawlers.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	next := strings.Replace(signed[:strings.Index(signed, "\n\n— ")+1], "as-of: "+c.AsOf(), "as-of: 2030-01-01", 1) +
		"  BrandNewBot: {operator: Test, category: ai-training, honors: yes, source: field, examples: [BrandNewBot/1.0]}\n"
	for name, text := range map[string]string{
		"signed.yaml": signed, "changed.yaml": strings.Replace(signed, "GPTBot", "GPTBut", 1), "next.yaml": next,
		"policy.yaml": "version: 1\nrules:\n  - for: category:ai-training\n    disallow: {crawl: /}\n",
		"config.json": `{"storage": {"module": "file_system", "root": "` + filepath.ToSlash(path("storage")) + `"}}`,
	} {
		if err := os.WriteFile(path(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	update := func(name string) error {
		_, err := runCrawlers(t, "update", "--dry-run", "--config", path("config.json"), path(name))
		return err
	}
	if err := update("signed.yaml"); err == nil || !strings.Contains(err.Error(), "without the key") {
		t.Errorf("without a key: %v", err)
	}
	catalogstore.Key = strings.TrimSpace(public)
	t.Cleanup(func() { catalogstore.Key = "" })
	if err := update("signed.yaml"); err != nil {
		t.Errorf("signed: %v", err)
	}
	if err := update("changed.yaml"); err == nil || !strings.Contains(err.Error(), "was changed") {
		t.Errorf("changed: %v", err)
	}
	var out bytes.Buffer
	cmd := diffCommand()
	cmd.SetOut(&out)
	cmd.SetErr(io.Discard)
	cmd.SetArgs([]string{"--catalog", path("next.yaml"), path("policy.yaml")})
	if err := cmd.Execute(); err != nil || !strings.Contains(out.String(), "BrandNewBot may no longer crawl the whole site") {
		t.Errorf("%v\n%s", err, out.String())
	}
	t.Logf("%s", out.String())
	cmd = diffCommand()
	cmd.SetErr(io.Discard)
	cmd.SetArgs([]string{"--catalog", path("next.yaml"), path("policy.yaml"), path("policy.yaml")})
	if err := cmd.Execute(); err == nil {
		t.Error("two policies and a catalog")
	}
}

// For some crawlers of the catalog, no source states a purpose. If a policy disallows a whole category, the command
// check names the ones that remain allowed, because they may belong to this category.
func TestCheckUnclassified(t *testing.T) {
	for text, want := range map[string]bool{
		"  - for: category:ai-training\n    disallow: {crawl: /}\n":  true,
		"  - for: category:feed\n    disallow: {crawl: /}\n":         true,
		"  - for: category:ai-training\n    disallow: {crawl: /a}\n": false,
		"  - for: GPTBot\n    disallow: {crawl: /}\n":                false,
	} {
		var out bytes.Buffer
		cmd := checkCommand()
		cmd.SetOut(&out)
		cmd.SetIn(strings.NewReader("version: 1\nrules:\n" + text))
		cmd.SetArgs([]string{"-"})
		if err := cmd.Execute(); err != nil || strings.Contains(out.String(), "GoogleOther, 007ac9 Crawler and 161 more remain allowed, because no source states their purpose") != want {
			t.Errorf("%s: %v\n%s", text, err, out.String())
		}
	}
}
