// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/dunglas/httpsfv"
)

// checkUsage reports contradictions between AI preferences. It compares the header fields with each other, with
// robots.txt, and with the rights reservation in TDMRep.
func (a *auditor) checkUsage(p *page, r *response, s said) {
	reported := map[string]bool{}
	disagree := func(key, what string) {
		if !reported[key] {
			reported[key] = true
			a.add(finding("usage-disagrees", p.url.String(), "", what, "state the same preference in both"))
		}
	}
	for _, l := range a.rules.usages {
		if !l.everyone {
			continue
		}
		var u usage
		if l.key == "content-signal" {
			u = contentSignal(l.value)
		} else if u = usageForPath(l.value, target(p.url)); u == nil {
			continue
		}
		for key, v := range u {
			for _, f := range s.usage {
				if h := f.says[key]; h != "" && h != v {
					disagree(key, fmt.Sprintf("the %s header says %s=%s, but line %d of robots.txt says %s", f.name, key, h, l.number, shorten(l.key+": "+l.value)))
				}
			}
		}
	}
	for i, f := range s.usage {
		if r.header.Get("Tdm-Reservation") == "1" && f.says["train-ai"] == "y" {
			disagree("tdm-reservation", "the header tdm-reservation reserves the rights for text and data mining, but "+f.name+" allows AI training")
		}
		for _, other := range s.usage[:i] {
			for key, v := range f.says {
				if o := other.says[key]; o != "" && o != v {
					disagree(key, fmt.Sprintf("about %s, the %s header says %s, and the %s header says the opposite", key, other.name, map[string]string{"y": "yes", "n": "no"}[o], f.name))
				}
			}
		}
	}
}

// usageForPath parses the value of a Content-Usage line, which may begin with a path. It returns nil if that path does
// not match target.
func usageForPath(value, target string) usage {
	if strings.HasPrefix(value, "/") || strings.HasPrefix(value, "*") {
		path, rest, _ := strings.Cut(value, " ")
		f := readRobots([]byte("User-agent: *\nDisallow: "+path), nil)
		if f.decide(reader{}, target).Allowed {
			return nil
		}
		value = rest
	}
	return contentUsage([]string{value})
}

// fieldUsage holds the preferences in one header field.
type fieldUsage struct {
	name string
	says usage
}

// usageOf returns the preferences in the header fields of a response.
func usageOf(h http.Header) (all []fieldUsage) {
	for _, f := range []fieldUsage{
		{"Content-Usage", contentUsage(h.Values("Content-Usage"))},
		{"Content-Signal", contentSignal(strings.Join(h.Values("Content-Signal"), ","))},
	} {
		if len(f.says) > 0 {
			all = append(all, f)
		}
	}
	return all
}

// field returns the preferences of a header field.
func (s said) field(name string) usage {
	for _, f := range s.usage {
		if f.name == name {
			return f.says
		}
	}
	return nil
}

// preferences returns the combined preferences of all header fields. If any field has the value "n" for a usage, the
// combined preference is "n".
func (s said) preferences() usage {
	all := usage{}
	for _, f := range s.usage {
		for key, v := range f.says {
			if all[key] != "n" {
				all[key] = v
			}
		}
	}
	return all
}

// usage maps AIPREF usages, such as train-ai, to "y" or "n".
type usage map[string]string

// contentUsage parses a Content-Usage value (draft-ietf-aipref-attach).
func contentUsage(values []string) usage {
	u := usage{}
	d, err := httpsfv.UnmarshalDictionary(values)
	if err != nil {
		return u
	}
	for _, key := range d.Names() {
		m, _ := d.Get(key)
		if item, ok := m.(httpsfv.Item); ok {
			if t, ok := item.Value.(httpsfv.Token); ok && (t == "y" || t == "n") {
				u[key] = string(t)
			}
		}
	}
	return u
}

// signalKeys maps the names of Content-Signal to the names of Content-Usage.
var signalKeys = map[string]string{"ai-train": "train-ai", "ai-input": "ai-use", "search": "search"}

// contentSignal parses a Content-Signal value, such as "search=yes, ai-train=no".
func contentSignal(value string) usage {
	u := usage{}
	for part := range strings.SplitSeq(value, ",") {
		k, v, _ := strings.Cut(strings.TrimSpace(part), "=")
		key := signalKeys[strings.ToLower(strings.TrimSpace(k))]
		switch strings.ToLower(strings.TrimSpace(v)) {
		case "yes":
			u[key] = "y"
		case "no":
			u[key] = "n"
		}
	}
	delete(u, "")
	return u
}

// String returns the preferences in the syntax of Content-Usage.
func (u usage) String() string {
	var parts []string
	for _, key := range []string{"train-ai", "ai-use", "search"} {
		if u[key] != "" {
			parts = append(parts, key+"="+u[key])
		}
	}
	return strings.Join(parts, ", ")
}
