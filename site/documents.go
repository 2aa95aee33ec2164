// SPDX-License-Identifier: Apache-2.0

package site

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/channels"
	"github.com/robotspolicy/caddy-robots-policy/robotsserve"
)

// Document is a document on a host, published by the policy. Its name is robots.txt, the name of a channel's file, or
// "fields" for the response fields that everyone gets.
type Document struct {
	Name    string `json:"name"`
	Host    string `json:"host"`    // a host name or wildcard from the rules; empty for all other hosts
	Version string `json:"version"` // the entity tag of a file, or the start of the SHA-256 of response fields
	Text    string `json:"text"`
}

// RobotsTxt is the name of the [Document] for robots.txt.
const RobotsTxt = "robots.txt"

// These constants limit the result of Documents.
const (
	maxDocumentHosts = 200
	maxDocumentBytes = 4 << 20
)

// Documents returns the documents that the policy publishes, for each host in the rules. Hosts with the same rules
// share a document, which has the first of these hosts as its Host. A wildcard means all of its subdomains that no rule
// names. leftOut is the number of hosts left out because of maxDocumentHosts or maxDocumentBytes.
func (s *Site) Documents() (all []Document, leftOut int) {
	size := 0
	done := map[int]bool{}
	add := func(name, host, version, text string) {
		size += len(text)
		all = append(all, Document{Name: name, Host: host, Version: version, Text: text})
	}
	for _, h := range robotsserve.Hosts(s.Policy) {
		host := string(h)
		if key := s.Policy.HostKey(host); done[key] {
			continue
		} else if done[key] = true; len(done) > maxDocumentHosts || size > maxDocumentBytes {
			leftOut++
			continue
		}
		text, etag := s.Robots.Text(host)
		add(RobotsTxt, host, robotsserve.Version(etag), text)
		for _, ch := range channels.Documents() {
			if doc := s.Document(ch, host); doc != nil {
				add(ch.File.Name, host, robotsserve.Version(doc.ETag), string(doc.Body))
			}
		}
		if fields := s.fields(host); fields != "" {
			sum := sha256.Sum256([]byte(fields))
			add("fields", host, hex.EncodeToString(sum[:6]), fields)
		}
	}
	return all, leftOut
}

// fields returns a text with the response fields that everyone gets, for an example path of each pattern.
func (s *Site) fields(host string) string {
	var b strings.Builder
	samples := s.samples()
	paths := append(make([]string, 0, len(samples)+1), "/")
	for _, sample := range samples {
		paths = append(paths, sample.path)
	}
	slices.Sort(paths)
	for _, path := range slices.Compact(paths) {
		h := s.Page(host, path, time.Time{}).header()
		for _, name := range slices.Sorted(maps.Keys(h)) {
			for _, value := range h[name] {
				fmt.Fprintf(&b, "%s\t%s: %s\n", path, name, value)
			}
		}
	}
	return b.String()
}
