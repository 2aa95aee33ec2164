// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/robotspolicy/caddy-robots-policy/source"
)

// A store loads a policy file and watches it until Close.
func ExamplePool_Open() {
	dir, err := os.MkdirTemp("", "policy")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary directory
	name := filepath.Join(dir, "site-policy.yaml")
	text := []byte("version: 1\nrules:\n  - {for: GPTBot, disallow: {crawl: /}}\n")
	if err := os.WriteFile(name, text, 0o600); err != nil {
		fmt.Println(err)
		return
	}
	var pool source.Pool
	store, err := pool.Open(context.Background(), source.Options{Policy: name})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close() //nolint:errcheck // nothing was written
	snapshot, err := store.Get(context.Background(), "www.example.com")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(snapshot.Site.Policy.Crawler("GPTBot") != 0)
	// Output: true
}
