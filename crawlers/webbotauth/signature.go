// SPDX-License-Identifier: Apache-2.0

package webbotauth

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"
)

// Request is what signatures can cover of a request, as the client sent it.
type Request struct {
	Method string
	Scheme string // http or https, of the client's connection
	Host   string // of the Host field or the :authority, with its port
	Target string // the request target: path and query
	Header http.Header
}

// message is a request with its signature fields parsed.
type message struct {
	Request
	input, signatures *httpsfv.Dictionary
	agents            *httpsfv.Dictionary // nil where the field is a single string
	agent             httpsfv.Item        // that string
}

// parseMessage parses the fields. A Signature-Agent that is a bare string is of
// the time before the draft: -01 lets verifiers accept it.
func parseMessage(r Request) (*message, error) {
	for _, name := range []string{"Signature-Input", "Signature", "Signature-Agent"} {
		size := 0
		for _, line := range r.Header[name] {
			size += len(line)
		}
		if size > maxFieldBytes {
			return nil, fmt.Errorf("%s is longer than %d octets", name, maxFieldBytes)
		}
	}
	m := &message{Request: r}
	var err error
	if m.input, err = httpsfv.UnmarshalDictionary(r.Header["Signature-Input"]); err != nil {
		return nil, fmt.Errorf("the Signature-Input field: %w", err)
	}
	if m.signatures, err = httpsfv.UnmarshalDictionary(r.Header["Signature"]); err != nil {
		return nil, fmt.Errorf("the Signature field: %w", err)
	}
	if m.agents, err = httpsfv.UnmarshalDictionary(r.Header["Signature-Agent"]); err != nil {
		m.agents = nil
		if m.agent, err = httpsfv.UnmarshalItem(r.Header["Signature-Agent"]); err != nil {
			return nil, fmt.Errorf("the Signature-Agent field: %w", err)
		}
	}
	return m, nil
}

func member(d *httpsfv.Dictionary, name string) httpsfv.Member {
	m, _ := d.Get(name)
	return m
}

// signature is one signature, with what it is over.
type signature struct {
	agent            string // the URL of the key directory
	keyID, nonce     string
	created, expires time.Time
	base             string
	value            []byte
}

// parseSignature reads the parameters of a signature and builds what it is over
// (draft section 4, RFC 9421 section 2.5). An error is a form that no signer of
// this draft sends, or that is not known here.
func parseSignature(m *message, label string, list httpsfv.InnerList) (*signature, error) {
	s := new(signature)
	if item, ok := member(m.signatures, label).(httpsfv.Item); ok {
		s.value, _ = item.Value.([]byte)
	}
	if len(s.value) != ed25519.SignatureSize {
		return nil, fmt.Errorf("the Signature field has no Ed25519 signature %q", label)
	}
	if err := s.parameters(list.Params); err != nil {
		return nil, err
	}
	if len(list.Items) > maxComponents {
		return nil, fmt.Errorf("it covers more than %d components", maxComponents)
	}
	var base strings.Builder
	seen := map[string]bool{}
	bound := false
	for _, item := range list.Items {
		id, err := httpsfv.Marshal(item)
		if err != nil {
			return nil, err
		}
		name, ok := item.Value.(string)
		if !ok || seen[id] {
			return nil, fmt.Errorf("the component %s stands twice or is no string", id)
		}
		seen[id] = true
		value, err := m.component(name, item.Params)
		if err != nil {
			return nil, err
		}
		bound = bound || name == "@authority" || name == "@target-uri"
		if name == "signature-agent" {
			if s.agent, err = m.agentOf(item.Params); err != nil {
				return nil, err
			}
		}
		base.WriteString(id + ": " + value + "\n")
	}
	if !bound {
		return nil, errors.New("it covers neither @authority nor @target-uri")
	}
	if s.agent == "" {
		return nil, errors.New("it does not cover signature-agent")
	}
	params, err := httpsfv.Marshal(list)
	if err != nil {
		return nil, err
	}
	base.WriteString(`"@signature-params": ` + params)
	s.base = base.String()
	return s, nil
}

// parameters reads created, expires, keyid and nonce, and refuses other algorithms
// than Ed25519.
func (s *signature) parameters(p *httpsfv.Params) error {
	seconds := func(name string) (time.Time, error) {
		v, _ := p.Get(name)
		n, ok := v.(int64)
		if !ok || n < 0 {
			return time.Time{}, fmt.Errorf("the parameter %s is missing or no time", name)
		}
		return time.Unix(n, 0), nil
	}
	var err error
	if s.created, err = seconds("created"); err != nil {
		return err
	}
	if s.expires, err = seconds("expires"); err != nil {
		return err
	}
	id, _ := p.Get("keyid")
	s.keyID, _ = id.(string)
	if s.keyID == "" {
		return errors.New("the parameter keyid is missing")
	}
	if nonce, ok := p.Get("nonce"); ok {
		if s.nonce, ok = nonce.(string); !ok || s.nonce == "" {
			return errors.New("the nonce is no string")
		}
	}
	if alg, ok := p.Get("alg"); ok && alg != "ed25519" {
		return fmt.Errorf("the algorithm %v is not known here", alg)
	}
	return nil
}

// component is the value of a component (RFC 9421 sections 2.1 and 2.2).
func (m *message) component(name string, params *httpsfv.Params) (string, error) {
	if name != strings.ToLower(name) || strings.ContainsAny(name, "\r\n") {
		return "", fmt.Errorf("the component %q is not in lower case", name)
	}
	names := params.Names()
	if strings.HasPrefix(name, "@") {
		if len(names) > 0 {
			return "", fmt.Errorf("parameters of %s are not known here", name)
		}
		return m.derived(name)
	}
	lines := m.Header[http.CanonicalHeaderKey(name)]
	if len(lines) == 0 {
		return "", fmt.Errorf("the field %s is covered and missing", name)
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
		return "", fmt.Errorf("the parameters %q of the component %s are not known here", names, name)
	}
	d := m.agents
	if name != "signature-agent" {
		var err error
		if d, err = httpsfv.UnmarshalDictionary(lines); err != nil {
			return "", fmt.Errorf("the field %s: %w", name, err)
		}
	}
	if d == nil {
		return "", fmt.Errorf("the field %s is no dictionary", name)
	}
	switch value := member(d, k).(type) {
	case httpsfv.Item:
		return httpsfv.Marshal(value)
	case httpsfv.InnerList:
		return httpsfv.Marshal(value)
	}
	return "", fmt.Errorf("the field %s has no member %q", name, k)
}

// derived is the value of a derived component (RFC 9421 section 2.2).
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
	return "", fmt.Errorf("the component %s is not known here", name)
}

// authority is the host in lower case, without the port that the scheme implies
// (RFC 9421 section 2.2.3).
func authority(scheme, host string) string {
	host = strings.ToLower(host)
	if scheme == "https" {
		return strings.TrimSuffix(host, ":443")
	}
	return strings.TrimSuffix(host, ":80")
}

// agentOf is the key directory that a covered signature-agent names.
func (m *message) agentOf(params *httpsfv.Params) (string, error) {
	item := m.agent
	if m.agents != nil {
		key, _ := params.Get("key")
		name, _ := key.(string)
		var ok bool
		if item, ok = member(m.agents, name).(httpsfv.Item); !ok {
			return "", errors.New("signature-agent is covered without saying which of its members")
		}
	}
	if len(item.Params.Names()) > 0 {
		return "", errors.New("parameters of a signature-agent are forbidden")
	}
	value, ok := item.Value.(string)
	if !ok {
		return "", errors.New("a signature-agent is no string")
	}
	return resolve(value)
}

// wellKnown is where an origin has its keys. Since -01 of the draft clients send
// the whole URL; most still send the origin.
const wellKnown = "/.well-known/http-message-signatures-directory"

// resolve makes the URL of a key directory out of it or of its origin.
func resolve(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.Fragment != "" || u.Opaque != "" {
		return "", fmt.Errorf("%q is no https URL of a key directory", text)
	}
	path := u.EscapedPath()
	if path == "" || path == "/" {
		path = wellKnown
	}
	return "https://" + authority("https", u.Host) + path, nil
}
