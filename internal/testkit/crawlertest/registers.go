// SPDX-License-Identifier: Apache-2.0

package crawlertest

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// TDMRep is a tdmrep.json file as a TDM agent reads it (W3C TDMRep final report, 10 May 2024, "TDM File on the Origin
// Server").
type TDMRep []TDMRule

// TDMRule is one object of a tdmrep.json file.
type TDMRule struct {
	Location    string `json:"location"`
	Reservation *int   `json:"tdm-reservation"`
	Policy      string `json:"tdm-policy"`
}

// ReadTDMRep reads a file. It returns an error if the file does not conform to the TDMRep report.
func ReadTDMRep(data string) (f TDMRep, err error) {
	d := json.NewDecoder(strings.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return nil, err
	}
	for i, r := range f {
		if !strings.HasPrefix(r.Location, "/") || r.Reservation == nil || *r.Reservation != 0 && *r.Reservation != 1 {
			return nil, fmt.Errorf("object %d: %+v", i, r)
		}
	}
	return f, nil
}

// At returns the file's declaration for a path in normal form. reservation is "0", "1", or "" if no location matches,
// and policy is the URL of the license policy. The first matching location decides.
func (f TDMRep) At(path string) (reservation, policy string) {
	for _, r := range f {
		if matchesAnyWay(r.Location, path) {
			return string(rune('0' + *r.Reservation)), r.Policy
		}
	}
	return "", ""
}

// matchesAnyWay reports whether a pattern matches a path according to the TDMRep report ("Use of regular expressions")
// and RFC 9309 section 2.2.3. It tries every possible length for each "*".
func matchesAnyWay(pattern, path string) bool {
	switch {
	case pattern == "":
		return true
	case pattern == "$":
		return path == ""
	case pattern[0] == '*':
		for i := 0; i <= len(path); i++ {
			if matchesAnyWay(pattern[1:], path[i:]) {
				return true
			}
		}
		return false
	}
	return path != "" && pattern[0] == path[0] && matchesAnyWay(pattern[1:], path[1:])
}

// RSL is an RSL 1.0 document as a client reads it.
type RSL struct {
	Contents []RSLContent
}

// RSLContent is a <content> element.
type RSLContent struct {
	URL      string
	Licenses []RSLLicense
	Owner    string
	Email    string
	Terms    string
}

// RSLLicense is a <license> element. The types of its <permits> and <prohibits> elements are "usage", "user" and
// "geo".
type RSLLicense struct {
	Permits, Prohibits map[string][]string
	Payment            string // "" if there is none, which means free (section 3.7)
	Custom             string
	Amount, Currency   string
}

// The values that RSL 1.0 defines: sections 3.4.1.1, 3.4.1.2 and 3.7.
var (
	rslUsages   = []string{"all", "ai-all", "ai-train", "ai-input", "ai-index", "search"}
	rslUsers    = []string{"commercial", "non-commercial", "education", "government", "personal"}
	rslPayments = []string{"purchase", "subscription", "training", "crawl", "use", "contribution", "attribution", "free"}
	rslChildren = map[string][]string{
		"": {"rsl"}, "rsl": {"content"},
		"content": {"license", "schema", "alternate", "copyright", "terms"},
		"license": {"permits", "prohibits", "payment", "legal"},
		"payment": {"standard", "custom", "amount"},
	}
)

const rslNamespace = "https://rslstandard.org/rsl"

// ReadRSL reads a document element by element. It returns an error if the document does not conform to RSL 1.0.
func ReadRSL(data string) (*RSL, error) {
	d := xml.NewDecoder(strings.NewReader(data))
	doc := &RSL{}
	var open []string
	var attrs []map[string]string
	text := ""
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		switch e := token.(type) {
		case xml.StartElement:
			parent := ""
			if len(open) > 0 {
				parent = open[len(open)-1]
			}
			if e.Name.Space != rslNamespace || !slices.Contains(rslChildren[parent], e.Name.Local) {
				return nil, fmt.Errorf("<%s %s> within <%s>", e.Name.Space, e.Name.Local, parent)
			}
			at := map[string]string{}
			for _, a := range e.Attr {
				at[a.Name.Local] = a.Value
			}
			open, attrs, text = append(open, e.Name.Local), append(attrs, at), ""
			if err := doc.start(e.Name.Local, at); err != nil {
				return nil, err
			}
		case xml.CharData:
			text += string(e)
		case xml.EndElement:
			at := attrs[len(attrs)-1]
			if err := doc.end(e.Name.Local, strings.TrimSpace(text), at); err != nil {
				return nil, err
			}
			open, attrs, text = open[:len(open)-1], attrs[:len(attrs)-1], ""
		}
	}
	if len(doc.Contents) == 0 {
		return nil, errors.New("no <content>")
	}
	return doc, nil
}

func (doc *RSL) start(name string, at map[string]string) error {
	switch name {
	case "content":
		if !strings.HasPrefix(at["url"], "/") || slices.ContainsFunc(doc.Contents, func(c RSLContent) bool { return c.URL == at["url"] }) {
			return fmt.Errorf("content with the url %q", at["url"])
		}
		doc.Contents = append(doc.Contents, RSLContent{URL: at["url"]})
	case "license":
		c := &doc.Contents[len(doc.Contents)-1]
		c.Licenses = append(c.Licenses, RSLLicense{Permits: map[string][]string{}, Prohibits: map[string][]string{}})
	}
	return nil
}

func (doc *RSL) end(name, text string, at map[string]string) error {
	if len(doc.Contents) == 0 {
		return nil
	}
	c := &doc.Contents[len(doc.Contents)-1]
	var l *RSLLicense
	if len(c.Licenses) > 0 {
		l = &c.Licenses[len(c.Licenses)-1]
	}
	switch name {
	case "license":
		if len(l.Permits)+len(l.Prohibits) == 0 {
			return errors.New("a license without permits and prohibits")
		}
	case "permits", "prohibits":
		values := map[string][]string{"usage": rslUsages, "user": rslUsers}[at["type"]]
		to := l.Permits
		if name == "prohibits" {
			to = l.Prohibits
		}
		if len(to[at["type"]]) > 0 {
			return fmt.Errorf("two <%s type=%q>", name, at["type"])
		}
		for word := range strings.FieldsSeq(text) {
			if !slices.Contains(values, word) {
				return fmt.Errorf("%q in <%s type=%q>", word, name, at["type"])
			}
			to[at["type"]] = append(to[at["type"]], word)
		}
		if len(to[at["type"]]) == 0 {
			return fmt.Errorf("an empty <%s>", name)
		}
	case "payment":
		if l.Payment = at["type"]; !slices.Contains(rslPayments, l.Payment) {
			return fmt.Errorf("payment %q", l.Payment)
		}
	case "custom":
		l.Custom = text
	case "amount":
		l.Amount, l.Currency = text, at["currency"]
	case "copyright":
		c.Owner, c.Email = text, at["contactEmail"]
	case "terms":
		c.Terms = text
	}
	return nil
}

// At tells whether the document permits a usage of the page at a path, which must be in normal form. The result is
// "yes" if the usage is permitted for free, "no" if it is prohibited, "license" if it is permitted for a payment, and
// "" otherwise. The longest matching URL decides. A usage is prohibited if at least one license prohibits it.
func (doc *RSL) At(path, usage string) string {
	best := -1
	for i, c := range doc.Contents {
		if matchesAnyWay(c.URL, path) && (best < 0 || len(c.URL) > len(doc.Contents[best].URL)) {
			best = i
		}
	}
	if best < 0 {
		return ""
	}
	answer := ""
	for _, l := range doc.Contents[best].Licenses {
		switch {
		case slices.Contains(l.Prohibits["usage"], usage):
			return "no"
		case !slices.Contains(l.Permits["usage"], usage):
		case l.Payment == "" || l.Payment == "free":
			answer = "yes"
		case answer == "":
			answer = "license"
		}
	}
	return answer
}
