// SPDX-License-Identifier: Apache-2.0

package handler_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/robotspolicy/caddy-robots-policy/handler"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

// The handler blocks a crawler that the policy disallows, and lets browsers pass.
func ExampleHandler_Wrap() {
	const text = "version: 1\nrules:\n  - {for: GPTBot, disallow: {crawl: /}, enforce: block}\n"
	policy, err := source.Compile("site-policy.yaml", []byte(text))
	if err != nil {
		fmt.Println(err)
		return
	}
	pages := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "Hello") })
	site := handler.New(handler.Options{Policies: source.Static(policy)}).Wrap(pages)
	for _, agent := range []string{"GPTBot/1.2", "Mozilla/5.0"} {
		r := httptest.NewRequest(http.MethodGet, "https://www.example.com/", nil)
		r.Header.Set("User-Agent", agent)
		w := httptest.NewRecorder()
		site.ServeHTTP(w, r)
		fmt.Println(agent, w.Code)
	}
	// Output:
	// GPTBot/1.2 403
	// Mozilla/5.0 200
}
