// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/caddyserver/certmagic"
	"github.com/spf13/cobra"

	"github.com/robotspolicy/caddy-robots-policy/source"
)

// storageTimeout limits the time for one operation of the storage.
const storageTimeout = time.Minute

// storageKey returns KEY from a name such as storage:KEY. what is the name of the flag or argument in errors.
func storageKey(what, name string) (string, error) {
	if name == "" {
		return "", errors.New(what + " is missing; write a key in Caddy's storage, such as storage:robots_policy/site.yaml")
	}
	if !strings.HasPrefix(name, source.StoragePrefix) {
		return "", fmt.Errorf("%s: %q is not a key in Caddy's storage; write storage: and the key, such as storage:robots_policy/site.yaml", what, name)
	}
	return source.StorageKey(name)
}

// storageOf holds the configuration file that sets the storage, and its config adapter.
type storageOf struct{ config, adapter string }

func (of *storageOf) flags(cmd *cobra.Command, usage string) {
	cmd.Flags().StringVar(&of.config, "config", "", usage)
	cmd.Flags().StringVar(&of.adapter, "adapter", "", "the config adapter to use for the file in --config")
}

// storage is the storage of a configuration, with other parts of the configuration that commands need.
type storage struct {
	certmagic.Storage
	config   configured
	handlers []map[string]any // the robots_policy handlers in the configuration
}

// merges reports whether a handler of the configuration uses the policy, and merges it with the site's own robots.txt.
func (s *storage) merges(policy string) bool {
	return slices.ContainsFunc(s.handlers, func(h map[string]any) bool { return h["policy"] == policy && h["robots_txt"] == "merge" })
}

// configured holds the parts of a Caddy configuration that commands use.
type configured struct {
	Admin *struct {
		Disabled bool   `json:"disabled"`
		Listen   string `json:"listen"`
		Remote   any    `json:"remote"`
	} `json:"admin"`
	StorageRaw json.RawMessage `json:"storage,omitempty" caddy:"namespace=caddy.storage inline_key=module"`
	Apps       struct {
		RobotsPolicy struct {
			Options struct {
				Console struct {
					Approval int `json:"approval"`
				} `json:"console"`
			} `json:"options"`
		} `json:"robots_policy"`
	} `json:"apps"`
}

func (of storageOf) open(ctx caddy.Context) (*storage, error) {
	config, _, _, err := caddycmd.LoadConfig(of.config, of.adapter)
	if err != nil {
		return nil, err
	}
	s := &storage{Storage: caddy.DefaultStorage}
	if len(config) > 0 {
		if err := json.Unmarshal(config, &s.config); err != nil {
			return nil, fmt.Errorf("reading the configuration: %w", err)
		}
		var tree any
		if err := json.Unmarshal(config, &tree); err == nil {
			s.handlers = handlersIn(nil, tree)
		}
	}
	if s.config.StorageRaw == nil {
		return s, nil
	}
	v, err := ctx.LoadModule(&s.config, "StorageRaw")
	if err != nil {
		return nil, fmt.Errorf("opening the storage: %w", err)
	}
	s.Storage, err = v.(caddy.StorageConverter).CertMagicStorage()
	return s, err
}

// place describes where the storage keeps the value of a key, such as the path of a file.
func (s *storage) place(key string) string {
	switch files, described := s.Storage.(fmt.Stringer); {
	case s.files() != nil:
		return s.files().Filename(key)
	case described:
		return fmt.Sprintf("%s in %s", key, files)
	}
	return fmt.Sprintf("%s in %T", key, s.Storage)
}

// files returns the storage if it keeps its values in files on this machine. Otherwise it returns nil.
func (s *storage) files() *certmagic.FileStorage {
	files, _ := s.Storage.(*certmagic.FileStorage)
	return files
}

// mayWrite returns an error if the file of a key does not belong to the user who runs this command. If the file does
// not exist, mayWrite checks the nearest existing directory above it. The server probably runs as the owner of that
// file or directory, so it could not read a file that this command creates. mayWrite does not create or change files.
func (s *storage) mayWrite(key string) error {
	files := s.files()
	if files == nil {
		return nil
	}
	for path := files.Filename(key); ; path = filepath.Dir(path) {
		owner, ok := ownerOf(path)
		switch {
		case ok && owner != os.Geteuid():
			return s.notOwner(owner)
		case ok && path == filepath.Clean(files.Path):
			return nil
		case path == filepath.Clean(files.Path) || path == filepath.Dir(path):
			return mayCreate(files.Path)
		}
	}
}

// notOwner returns the error for a storage whose files belong to another user. The error shows how to run this command
// as that user.
func (s *storage) notOwner(owner int) error {
	name := fmt.Sprintf("#%d", owner) // sudo accepts a user ID in this form
	if u, err := user.LookupId(fmt.Sprint(owner)); err == nil {
		name = u.Username
	}
	return fmt.Errorf("not written: the storage %s belongs to the user %s, and Caddy could not read files that another user creates in the storage; run: sudo -u %s %s",
		s.files().Path, name, shellWord(name), commandLine())
}

// caddyUser is the user that Caddy's packages create for the server.
const caddyUser = "caddy"

// mayCreate returns an error if this command runs as root and would create the directory of the storage, but Caddy runs
// as another user.
func mayCreate(path string) error {
	if _, err := user.Lookup(caddyUser); err != nil || os.Geteuid() != 0 {
		return nil //nolint:nilerr // without that user, Caddy runs as the user who runs this command
	}
	return fmt.Errorf("not written: the storage %s does not exist yet, and Caddy could not read a directory that belongs to root. Start Caddy first, or run: sudo -u %s %s",
		path, caddyUser, commandLine())
}

// commandLine returns the command line of this process, quoted for a shell.
func commandLine() string {
	words := make([]string, len(os.Args))
	for i, word := range os.Args {
		words[i] = shellWord(word)
	}
	return strings.Join(words, " ")
}

func shellWord(word string) string {
	if word != "" && strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=/:.,@%+") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
