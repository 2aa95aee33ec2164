// SPDX-License-Identifier: Apache-2.0

package rsl_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/rights"
	"github.com/robotspolicy/caddy-robots-policy/rights/rsl"
)

// Whatever an author writes into the texts of a policy, the document is well-formed XML. It contains the texts only as
// text, so they cannot add an element or a comment.
func FuzzDocument(f *testing.F) {
	f.Add("Example <Media> & Co", "terms?a=1&b=2", "/a*b", "?q=1")
	f.Add("]]>", "--><x/>", "%00'\"", "é\u0085\ufffe")
	f.Add("a\nb", "<!DOCTYPE x>", "*<y/>", "\x00")
	f.Fuzz(func(t *testing.T, holder, terms, path, query string) {
		text, err := yaml.Marshal(map[string]any{
			"version": 1,
			"rules":   []any{map[string]any{"for": "everyone", "disallow": map[string]any{"train-ai": "/" + path, "search": "/x?" + query}}},
			"rights":  map[string]any{"copyright": holder, "contact": "mailto:rights@example.com", "terms": "https://www.example.com/" + terms},
		})
		if err != nil {
			t.Skip(err)
		}
		file, _ := policyfile.Load("policy.yaml", text)
		if file == nil {
			return // the policy is rejected, so nothing is published
		}
		if d, _ := rsl.New(rights.NewView(file.Policy, "www.example.com"), &file.Spec.Rights); d != nil {
			checkTexts(t, d.Body, map[string]string{"copyright": file.Spec.Rights.Copyright, "terms": file.Spec.Rights.Terms})
		}
	})
}

// checkTexts checks that a document has only elements of known names, and that these elements have the given texts.
func checkTexts(t *testing.T, body []byte, texts map[string]string) {
	t.Helper()
	known := []string{"rsl", "content", "license", "permits", "prohibits", "copyright", "terms"}
	var element string
	for d := xml.NewDecoder(bytes.NewReader(body)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, body)
		}
		switch token := token.(type) {
		case xml.StartElement:
			if element = token.Name.Local; !slices.Contains(known, element) {
				t.Fatalf("an element %q\n%s", element, body)
			}
		case xml.EndElement:
			element = ""
		case xml.CharData:
			want, ok := texts[element]
			if got := string(token); ok && got != strings.ToValidUTF8(want, "\ufffd") {
				t.Errorf("%s: %q, want %q\n%s", element, got, want, body)
			}
		case xml.Comment, xml.Directive:
			t.Fatalf("a %T\n%s", token, body)
		}
	}
}
