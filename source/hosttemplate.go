// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// hostTemplate is a file name with placeholders, such as /etc/policies/{host}.yaml. The placeholders stand for the host
// of a request, or for its labels.
type hostTemplate struct {
	name  string // the configured name as an absolute path
	dir   string // the directory of all files: the path before the first placeholder, with a final slash
	parts []hostPart
	after string // the text after the last placeholder
}

// hostPart is a placeholder and the text before it.
type hostPart struct {
	before string
	label  int // wholeHost, or the number of the label, from the right
}

const wholeHost = -1

var hostPlaceholder = regexp.MustCompile(`\{(?:(?:http\.request\.)?(host)|(?:(?:http\.request\.)?host\.)?labels\.([0-9]+))\}`)

// IsHostTemplate reports whether the name of a policy contains a placeholder.
func IsHostTemplate(name string) bool { return strings.Contains(name, "{") }

// parseHostTemplate parses a file name with placeholders. The only placeholders are the host and its labels,
// because these can be checked. A template must not put files directly into the root directory.
func parseHostTemplate(name string) (*hostTemplate, error) {
	abs, err := filepath.Abs(name)
	if err != nil {
		return nil, fmt.Errorf("finding the policy files: %w", err)
	}
	t := &hostTemplate{name: abs}
	before, _, found := strings.Cut(abs, "{")
	if !found {
		return nil, fmt.Errorf("invalid policy file name %q: the \"..\" in this name removes the placeholder, such as {host}; write the name without \"..\"", name)
	}
	slash := strings.LastIndexByte(before, filepath.Separator)
	t.dir = abs[:slash+1]
	t.after = abs[slash+1:]
	for _, found := range hostPlaceholder.FindAllStringSubmatch(t.after, -1) {
		part := hostPart{label: wholeHost}
		part.before, t.after, _ = strings.Cut(t.after, found[0])
		if found[2] != "" {
			if part.label, err = strconv.Atoi(found[2]); err != nil {
				return nil, err
			}
		}
		t.parts = append(t.parts, part)
	}
	if strings.ContainsAny(t.after, "{}") || slices.ContainsFunc(t.parts, func(p hostPart) bool { return strings.ContainsAny(p.before, "{}") }) {
		return nil, fmt.Errorf("invalid policy file name %q: the only placeholders that it can contain are {host} and {labels.N}", name)
	}
	if t.dir == string(filepath.Separator) && strings.Count(abs, string(filepath.Separator)) == 1 {
		return nil, errors.New("policy files for hosts must be in a directory other than /")
	}
	return t, nil
}

// appendFile appends the name of a host's file, relative to t.dir, to name. host must be a result of cleanHost. ok is
// false if the host has fewer labels than the template needs, or if the file would be outside of t.dir.
func (t *hostTemplate) appendFile(name []byte, host string) (file []byte, ok bool) {
	start := len(name)
	for _, p := range t.parts {
		name = append(name, p.before...)
		label, ok := host, true
		if p.label != wholeHost {
			label, ok = labelOf(host, p.label)
		}
		if !ok {
			return nil, false
		}
		name = append(name, label...)
	}
	name = append(name, t.after...)
	return name, filepath.IsLocal(string(name[start:]))
}

// labelOf returns the label n of a host, where 0 is the rightmost label. It returns false if the host has too few
// labels.
func labelOf(host string, n int) (string, bool) {
	for range n {
		dot := strings.LastIndexByte(host, '.')
		if dot < 0 {
			return "", false
		}
		host = host[:dot]
	}
	return host[strings.LastIndexByte(host, '.')+1:], true
}

// cleanHost converts the host of a request to the form used in file names: lower case, ASCII (A-labels), no port and no
// final dot. It returns false if the host contains anything but letters, digits, dots and hyphens (RFC 1123 section
// 2.1); such hosts have no file.
func cleanHost(host string) (string, bool) {
	if len(host) > 1024 {
		return "", false
	}
	host = policy.NormalizeHost(host)
	if host == "" || len(host) > 253 {
		return "", false
	}
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return "", false
		}
		for _, c := range []byte(label) {
			if c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') {
				return "", false
			}
		}
	}
	return host, true
}
