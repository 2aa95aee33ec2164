// SPDX-License-Identifier: Apache-2.0

package webbotauth

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/dunglas/httpsfv"
)

// base returns the signature base (RFC 9421 section 2.5) for a list of components and parameters.
func (m *message) base(list httpsfv.InnerList) (string, error) {
	if len(list.Items) > maxComponents {
		return "", fmt.Errorf("the signature covers more than %d components", maxComponents)
	}
	var base strings.Builder
	seen := map[string]bool{}
	for _, item := range list.Items {
		id, err := httpsfv.Marshal(item)
		if err != nil {
			return "", err
		}
		name, ok := item.Value.(string)
		if !ok || seen[id] {
			return "", fmt.Errorf("the component %s is repeated or not a string", id)
		}
		seen[id] = true
		value, err := m.component(name, item.Params)
		if err != nil {
			return "", err
		}
		base.WriteString(id + ": " + value + "\n")
	}
	params, err := httpsfv.Marshal(list)
	if err != nil {
		return "", err
	}
	base.WriteString(`"@signature-params": ` + params)
	return base.String(), nil
}

// component returns the value of a component (RFC 9421 sections 2.1 and 2.2).
func (m *message) component(name string, params *httpsfv.Params) (string, error) {
	if name != strings.ToLower(name) || strings.ContainsAny(name, "\r\n") {
		return "", fmt.Errorf("the component %q is not in lower case", name)
	}
	names := params.Names()
	if strings.HasPrefix(name, "@") {
		if len(names) > 0 {
			return "", fmt.Errorf("parameters of %s are not supported", name)
		}
		return m.derived(name)
	}
	lines := m.Header[http.CanonicalHeaderKey(name)]
	if len(lines) == 0 {
		return "", fmt.Errorf("the covered field %s is missing", name)
	}
	if len(names) == 0 {
		trimmed := make([]string, len(lines))
		for i, l := range lines {
			trimmed[i] = strings.TrimSpace(l)
		}
		return strings.Join(trimmed, ", "), nil
	}
	key, _ := params.Get("key")
	k, ok := key.(string)
	if !ok || len(names) > 1 {
		return "", fmt.Errorf("the parameters %q of the component %s are not supported", names, name)
	}
	d := m.agents
	if name != "signature-agent" {
		var err error
		if d, err = httpsfv.UnmarshalDictionary(lines); err != nil {
			return "", fmt.Errorf("invalid field %s: %w", name, err)
		}
	}
	if d == nil {
		return "", fmt.Errorf("the field %s is not a dictionary", name)
	}
	switch value := member(d, k).(type) {
	case httpsfv.Item:
		return httpsfv.Marshal(value)
	case httpsfv.InnerList:
		return httpsfv.Marshal(value)
	}
	return "", fmt.Errorf("the field %s has no member %q", name, k)
}

// derived returns the value of a derived component (RFC 9421 section 2.2).
func (m *message) derived(name string) (string, error) {
	path, query, _ := strings.Cut(m.Target, "?")
	switch name {
	case "@method":
		return m.Method, nil
	case "@scheme":
		return m.Scheme, nil
	case "@authority":
		return authority(m.Scheme, m.Host), nil
	case "@target-uri":
		return m.Scheme + "://" + authority(m.Scheme, m.Host) + m.Target, nil
	case "@request-target":
		return m.Target, nil
	case "@path":
		if path == "" {
			path = "/"
		}
		return path, nil
	case "@query":
		return "?" + query, nil
	}
	return "", fmt.Errorf("the component %s is not supported", name)
}

// authority returns the host in lower case, without the scheme's default port (RFC 9421 section 2.2.3).
func authority(scheme, host string) string {
	host = strings.ToLower(host)
	if scheme == "https" {
		return strings.TrimSuffix(host, ":443")
	}
	return strings.TrimSuffix(host, ":80")
}
