// SPDX-License-Identifier: Apache-2.0

package webbotauth

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/dunglas/httpsfv"
)

// Request holds the parts of a request that a signature can cover. They must be unchanged from the client's request.
type Request struct {
	Method string
	Scheme string // http or https, the scheme of the client's connection
	Host   string // Host field or :authority, with the port
	Target string // path and query
	Header http.Header
}

// message holds a request and its parsed signature fields.
type message struct {
	Request
	input, signatures *httpsfv.Dictionary
	agents            *httpsfv.Dictionary // the field Signature-Agent; nil if the field is a single string
	agent             httpsfv.Item        // Signature-Agent as a single string
}

// parseMessage parses the signature fields. It also accepts a Signature-Agent field that is a single string, as in
// earlier drafts. Version -01 of the draft allows verifiers to accept such a field.
func parseMessage(r Request) (*message, error) {
	for _, name := range []string{"Signature-Input", "Signature", "Signature-Agent"} {
		size := 0
		for _, line := range r.Header[name] {
			size += len(line)
		}
		if size > maxFieldBytes {
			return nil, fmt.Errorf("%s is longer than %d bytes", name, maxFieldBytes)
		}
	}
	m := &message{Request: r}
	var err error
	if m.input, err = httpsfv.UnmarshalDictionary(r.Header["Signature-Input"]); err != nil {
		return nil, fmt.Errorf("invalid Signature-Input: %w", err)
	}
	if m.signatures, err = httpsfv.UnmarshalDictionary(r.Header["Signature"]); err != nil {
		return nil, fmt.Errorf("invalid Signature: %w", err)
	}
	if m.agents, err = httpsfv.UnmarshalDictionary(r.Header["Signature-Agent"]); err != nil {
		m.agents = nil
		if m.agent, err = httpsfv.UnmarshalItem(r.Header["Signature-Agent"]); err != nil {
			return nil, fmt.Errorf("invalid Signature-Agent: %w", err)
		}
	}
	return m, nil
}

func member(d *httpsfv.Dictionary, name string) httpsfv.Member {
	m, _ := d.Get(name)
	return m
}

type signature struct {
	agent            string // location.id of the key directory
	keyID, nonce     string
	created, expires time.Time
	base             string
	value            []byte
}

// parseSignature parses the parameters of a signature and builds its base (draft section 5.2, RFC 9421 section 2.5). It
// returns an error for a signature that the draft does not allow or that this package does not support.
func parseSignature(m *message, label string, list httpsfv.InnerList) (*signature, error) {
	s := new(signature)
	if item, ok := member(m.signatures, label).(httpsfv.Item); ok {
		s.value, _ = item.Value.([]byte)
	}
	if len(s.value) != ed25519.SignatureSize {
		return nil, fmt.Errorf("the field Signature has no Ed25519 signature %q", label)
	}
	if err := s.parameters(list.Params); err != nil {
		return nil, err
	}
	bound := slices.ContainsFunc(list.Items, func(i httpsfv.Item) bool { return i.Value == "@authority" || i.Value == "@target-uri" })
	if !bound {
		return nil, errors.New("the signature covers neither @authority nor @target-uri")
	}
	var err error
	if s.agent, err = m.agentOf(label, list); err != nil {
		return nil, err
	}
	s.base, err = m.base(list)
	return s, err
}

// parameters parses created, expires, keyid and nonce. It rejects algorithms other than Ed25519.
func (s *signature) parameters(p *httpsfv.Params) error {
	seconds := func(name string) (time.Time, error) {
		v, _ := p.Get(name)
		n, ok := v.(int64)
		if !ok || n < 0 {
			return time.Time{}, fmt.Errorf("the parameter %s is missing or not a time", name)
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
			return errors.New("the nonce is not a string")
		}
	}
	if alg, ok := p.Get("alg"); ok && alg != "ed25519" {
		return fmt.Errorf("the algorithm %v is not supported", alg)
	}
	return nil
}

// agentOf returns the key directory that a signature names. The directory is the member of Signature-Agent that the
// signature covers and that has the label of the signature. If the signature covers only one member, this member may
// have another label, as in the examples of draft-meunier-webbotauth-httpsig-protocol.
func (m *message) agentOf(label string, list httpsfv.InnerList) (string, error) {
	var covered []httpsfv.Item
	for _, component := range list.Items {
		if component.Value != "signature-agent" {
			continue
		}
		if m.agents == nil {
			return identifier(m.agent)
		}
		key, _ := component.Params.Get("key")
		name, _ := key.(string)
		item, ok := member(m.agents, name).(httpsfv.Item)
		if !ok {
			return "", errors.New("the signature covers signature-agent, but without the parameter \"key\", which must name a member of the field Signature-Agent")
		}
		if name == label {
			return identifier(item)
		}
		covered = append(covered, item)
	}
	switch len(covered) {
	case 0:
		return "", errors.New("the signature does not cover signature-agent")
	case 1:
		return identifier(covered[0])
	}
	return "", fmt.Errorf("the signature covers several members of signature-agent, none with the key %s", label)
}

// NamedDirectories returns the elements of directories that the Signature-Agent field of a request names. directories
// holds the URLs of key directories. NamedDirectories does not check the signature.
func NamedDirectories(h http.Header, directories []string) (named []string) {
	m, err := parseMessage(Request{Header: h})
	if err != nil {
		return nil
	}
	agents := []httpsfv.Item{m.agent}
	if m.agents != nil {
		agents = agents[:0]
		for _, name := range m.agents.Names() {
			if item, ok := member(m.agents, name).(httpsfv.Item); ok {
				agents = append(agents, item)
			}
		}
	}
	for _, item := range agents[:min(len(agents), maxSignatures)] {
		id, err := identifier(item)
		if err != nil {
			continue
		}
		for _, d := range directories {
			if where, err := resolve(d); err == nil && where.id == id && !slices.Contains(named, d) {
				named = append(named, d)
			}
		}
	}
	return named
}

// identifier returns the location.id of the URL that a member of Signature-Agent names. The URL may be the URL of a key
// directory, a JWK Set or a card.
func identifier(agent httpsfv.Item) (string, error) {
	for _, name := range agent.Params.Names() {
		how, _ := agent.Params.Get(name)
		if name != "type" || how != httpsfv.Token("directory") && how != httpsfv.Token("jwks_uri") && how != httpsfv.Token("cimd") {
			return "", fmt.Errorf("a signature-agent member has the parameter %s=%v; it can only have the parameter type, with the value directory, jwks_uri or cimd", name, how)
		}
	}
	value, ok := agent.Value.(string)
	if !ok {
		return "", errors.New("a signature-agent member is not a string")
	}
	where, err := resolve(value)
	return where.id, err
}
