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
	agent            string // the key directory, as the draft compares it
	keyID, nonce     string
	created, expires time.Time
	base             string
	value            []byte
}

// parseSignature reads the parameters of a signature and builds what it is over
// (draft section 5.2, RFC 9421 section 2.5). An error is a form that no signer of
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
	bound := slices.ContainsFunc(list.Items, func(i httpsfv.Item) bool { return i.Value == "@authority" || i.Value == "@target-uri" })
	if !bound {
		return nil, errors.New("it covers neither @authority nor @target-uri")
	}
	var err error
	if s.agent, err = m.agentOf(label, list); err != nil {
		return nil, err
	}
	s.base, err = m.base(list)
	return s, err
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

// agentOf is the key directory that a signature names: the member of Signature-Agent
// that it covers under its own label. A signature that covers one member only may use
// another key for it, as the vectors of draft-meunier-webbotauth-httpsig-protocol do;
// of several others nobody could say which is the signer's.
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
			return "", errors.New("signature-agent is covered without saying which of its members")
		}
		if name == label {
			return identifier(item)
		}
		covered = append(covered, item)
	}
	switch len(covered) {
	case 0:
		return "", errors.New("it does not cover signature-agent")
	case 1:
		return identifier(covered[0])
	}
	return "", fmt.Errorf("it covers several members of signature-agent and none is called %s", label)
}

// identifier is the directory that a member of Signature-Agent names, as directories are
// told apart.
func identifier(agent httpsfv.Item) (string, error) {
	if len(agent.Params.Names()) > 0 {
		return "", errors.New("parameters of a signature-agent are forbidden")
	}
	value, ok := agent.Value.(string)
	if !ok {
		return "", errors.New("a signature-agent is no string")
	}
	where, err := resolve(value)
	return where.id, err
}
