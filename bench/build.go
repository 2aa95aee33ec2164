// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// build compiles a command in the same way as xcaddy, and returns the path of the binary, which is in dir. pkg is a
// package of the Go module in the folder module.
func build(ctx context.Context, dir, module, pkg string, flags ...string) (string, error) {
	binary := filepath.Join(dir, filepath.Base(pkg))
	args := append([]string{"build", "-ldflags=-s -w"}, flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, "-o", binary, pkg)...)
	cmd.Dir = module
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", pkg, err, out)
	}
	return binary, nil
}

// caddyVersion returns the version of Caddy in a binary, according to the binary's build information.
func caddyVersion(binary string) string {
	if info, err := buildinfo.ReadFile(binary); err == nil {
		for _, d := range info.Deps {
			if d.Path == "github.com/caddyserver/caddy/v2" {
				return d.Version
			}
		}
	}
	return "unknown"
}

// revision returns the Git revision of the source in the current folder, if the folder is a Git checkout.
func revision(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty=, changed").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}
