// SPDX-License-Identifier: Apache-2.0

package robotspolicy

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/robotspolicy/caddy-robots-policy/policy"
)

// hostTemplate is the name of a file for each host, such as
// /etc/policies/{host}.yaml.
type hostTemplate struct {
	text  string // as it is written, absolute
	dir   string // what stands before the first placeholder
	parts []hostPart
}

// hostPart is a piece of text, the host, or one of its labels.
type hostPart struct {
	text  string
	label int // wholeHost, or which label, from the right; for an empty text
}

const wholeHost = -1

var hostPlaceholder = regexp.MustCompile(`\{(?:http\.request\.)?(?:host\.)?(host|labels\.([0-9]+))\}`)

// isHostTemplate reports whether a policy's name has a placeholder.
func isHostTemplate(name string) bool { return strings.Contains(name, "{") }

// parseHostTemplate reads the name of a file for each host. Only the host and
// its labels may stand in it: they are what can be checked.
func parseHostTemplate(name string) (*hostTemplate, error) {
	abs, err := filepath.Abs(name)
	if err != nil {
		return nil, fmt.Errorf("finding the policy files: %w", err)
	}
	t := &hostTemplate{text: abs}
	first := strings.IndexByte(abs, '{')
	slash := strings.LastIndexByte(abs[:first], filepath.Separator)
	t.dir = abs[:slash+1]
	rest := abs[slash+1:]
	for rest != "" {
		at := hostPlaceholder.FindStringSubmatchIndex(rest)
		if at == nil {
			t.parts = append(t.parts, hostPart{text: rest})
			break
		}
		if at[0] > 0 {
			t.parts = append(t.parts, hostPart{text: rest[:at[0]]})
		}
		part := hostPart{label: wholeHost}
		if at[4] >= 0 {
			if part.label, err = strconv.Atoi(rest[at[4]:at[5]]); err != nil {
				return nil, err
			}
		}
		t.parts = append(t.parts, part)
		rest = rest[at[1]:]
	}
	for _, p := range t.parts {
		if strings.ContainsAny(p.text, "{}") {
			return nil, fmt.Errorf("the policy file's name %q: of a request, only {host} and {labels.N} can stand in it", name)
		}
	}
	if t.dir == string(filepath.Separator) && strings.Count(abs, string(filepath.Separator)) == 1 {
		return nil, errors.New("policy files for hosts need a directory of their own")
	}
	return t, nil
}

// expand returns the file of a host, below the directory; false if the host has
// not as many labels.
func (t *hostTemplate) expand(host string) (string, bool) {
	var b strings.Builder
	labels := strings.Split(host, ".")
	for _, p := range t.parts {
		switch {
		case p.text != "":
			b.WriteString(p.text)
		case p.label == wholeHost:
			b.WriteString(host)
		case p.label < len(labels):
			b.WriteString(labels[len(labels)-1-p.label])
		default:
			return "", false
		}
	}
	return b.String(), filepath.IsLocal(b.String())
}

// fileHost brings the host of a request into the form in which it stands in
// names of files: lower case, A-labels, without port. Only names of letters,
// digits, dots and hyphens are hosts with a file (RFC 1123 section 2.1).
func fileHost(host string) (string, bool) {
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
