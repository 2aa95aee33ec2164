// SPDX-License-Identifier: Apache-2.0

package handler

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/activity"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

type trusting struct{ NetHTTP }

func (trusting) TrustsProxy(*http.Request) bool { return true }

type visits []activity.Visit

func (v *visits) Record(visit activity.Visit) { *v = append(*v, visit) }

// Of a page that another server sends, neither status nor size is known; a refusal is ours.
func TestDecideRecords(t *testing.T) {
	t.Parallel()
	s, err := source.Compile("policy.yaml", []byte("version: 1\nrules:\n  - for: GPTBot\n    disallow: {crawl: /closed/}\n    enforce: block\n"))
	if err != nil {
		t.Fatal(err)
	}
	var got visits
	var recorders activity.Recorders
	recorders.Add("test", &got)
	h := New(Options{Policies: source.Static(s), Recorders: &recorders, Server: trusting{}, Decide: StyleNginx})
	for _, target := range []string{"/open", "/closed/x"} {
		r := httptest.NewRequest(http.MethodGet, DecidePath, nil)
		r.Header = http.Header{"User-Agent": {"GPTBot/1.2"}, "X-Original-Uri": {target}, "X-Original-Method": {"GET"}}
		if err := h.Decide(httptest.NewRecorder(), r); err != nil {
			t.Fatal(err)
		}
	}
	if len(got) != 2 || got[0].Path != "/open" || got[0].Status != 0 || got[0].Bytes != 0 || got[1].Path != "/closed/x" || got[1].Status != http.StatusForbidden {
		t.Errorf("%+v", got)
	}
}
