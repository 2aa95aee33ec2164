// SPDX-License-Identifier: Apache-2.0

package audit_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/robotspolicy/caddy-robots-policy/audit"
)

// If nothing listens on the port, Run returns an error instead of a report with findings.
func TestNothingListens(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := &url.URL{Scheme: "http", Host: l.Addr().String(), Path: "/"}
	l.Close()
	report, err := audit.Run(t.Context(), address, audit.Options{})
	if err == nil || !strings.Contains(err.Error(), "connecting to "+address.Host+" failed: ") || !strings.HasSuffix(err.Error(), "check the address, and that the site is up") {
		t.Errorf("report %+v, error %v", report, err)
	}
}

// An address without a scheme means https://. A server on a developer's machine often supports only http. The error of
// Run then tells the user to write http://.
func TestServerWithoutTLS(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	report, err := audit.Run(t.Context(), &url.URL{Scheme: "https", Host: host, Path: "/"}, audit.Options{})
	if err == nil || !strings.HasSuffix(err.Error(), "; write http://"+host) {
		t.Errorf("report %+v, error %v", report, err)
	}
}
