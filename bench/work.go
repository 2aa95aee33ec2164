// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/bench/internal/workload"
)

// work describes the answers of a row in each scenario, such as "200, 1024 octets, 3 headers". They show whether the
// row did all of its work. If it did not, its ratio to another row means little, because a row that does less work is
// faster.
type work struct {
	Row string            `json:"row"`
	Did map[string]string `json:"did"` // keyed by the names of scenarios
}

var (
	robotsMeta = regexp.MustCompile(`(?i)<meta[^>]*name=["']?robots`)
	headEnd    = []byte("</head>")
)

// check sends one request of each scenario to a row. It stores the expected answers in the row, and returns the work
// that the row did.
func (r *row) check(scenarios []workload.Scenario) (*work, error) {
	transport := &http.Transport{DisableCompression: true}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: 20 * time.Second}
	w := &work{Row: r.Name, Did: map[string]string{}}
	r.wants = map[string]answer{}
	for _, s := range scenarios {
		if s.Revalidate {
			tag, _, err := r.ask(client, &s, false)
			if err != nil {
				return nil, err
			}
			r.etag = tag.Header.Get("Etag")
		}
		resp, body, err := r.ask(client, &s, s.Revalidate)
		if err != nil {
			return nil, err
		}
		r.wants[s.Name] = answer{resp.StatusCode, len(body)}
		w.Did[s.Name] = describe(&s, resp, body)
	}
	return w, nil
}

func (r *row) ask(client *http.Client, s *workload.Scenario, revalidate bool) (*http.Response, []byte, error) {
	like := s.Request(0, r.etag)
	q, err := http.NewRequest(like.Method, "http://"+r.addr()+like.RequestURI, nil)
	if err != nil {
		return nil, nil, err
	}
	q.Host, q.Header = like.Host, like.Header
	if !revalidate {
		q.Header.Del("If-None-Match")
	}
	resp, err := client.Do(q)
	if err != nil {
		return nil, nil, fmt.Errorf("%s, %s: %w", r.Name, s.Name, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, nil, fmt.Errorf("%s, %s: %w", r.Name, s.Name, err)
	}
	return resp, body, nil
}

// describe returns one cell of the work table. The cell has the status, length, framing and coding of a response, and
// the numbers of its header fields and meta tags.
func describe(s *workload.Scenario, resp *http.Response, body []byte) string {
	did := []string{fmt.Sprint(resp.StatusCode)}
	h := resp.Header
	if resp.StatusCode == http.StatusOK {
		did = append(did, fmt.Sprintf("%d octets", len(body)))
		if resp.ContentLength < 0 {
			did = append(did, "chunked")
		}
		if coding := h.Get("Content-Encoding"); coding != "" {
			did = append(did, coding)
		}
	}
	if strings.HasPrefix(s.Path, "/robots.txt") {
		return strings.Join(did, ", ")
	}
	tags := 0
	for _, name := range []string{"Robots-Tag", "X-Robots-Tag", "Content-Usage"} {
		if h.Get(name) != "" {
			tags++
		}
	}
	if tags > 0 {
		did = append(did, fmt.Sprintf("%d headers", tags))
	}
	if strings.Contains(h.Get("Content-Type"), "html") {
		if n := len(robotsMeta.FindAll(headOf(h, body), -1)); n > 0 {
			did = append(did, fmt.Sprintf("%d meta", n))
		}
	}
	return strings.Join(did, ", ")
}

func headOf(h http.Header, body []byte) []byte {
	if h.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			return nil
		}
		if body, err = io.ReadAll(z); err != nil {
			return nil // the body is incomplete, so its meta tags are not counted
		}
	}
	head, _, _ := bytes.Cut(body, headEnd)
	return head
}

// mustDo maps each scenario to the parts that the result of describe must have for a row of this module. If a part is
// missing, the run fails, because a row that does less work cannot be compared.
var mustDo = map[string][]string{
	"json":        {"200", "3 headers"},
	"page":        {"200", "3 headers", "1 meta"},
	"page-gzip":   {"200", "3 headers", "1 meta", "gzip"},
	"stream":      {"200", "3 headers", "1 meta", "chunked"},
	"blocked":     {"403"},
	"robots":      {"200"},
	"robots-gzip": {"200", "gzip"},
	"robots-304":  {"304"},
}

// missing returns a message for each scenario in which a row of this module did not do all of its work. Part of the
// work is to keep the length of the page, if the upstream sent a length and the page is not compressed.
func (w *work) missing() (all []string) {
	for name, did := range w.Did {
		parts := strings.Split(did, ", ")
		for _, must := range mustDo[name] {
			if !slices.Contains(parts, must) {
				all = append(all, fmt.Sprintf("%s does not do its work in %s: no %q in %q", w.Row, name, must, did))
			}
		}
		if name != "stream" && name != "page-gzip" && slices.Contains(parts, "chunked") {
			all = append(all, fmt.Sprintf("%s loses the length in %s: %q", w.Row, name, did))
		}
	}
	slices.Sort(all)
	return all
}
