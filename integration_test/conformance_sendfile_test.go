// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

func init() { caddy.RegisterModule(countedListener{}) }

// countedListener counts the bytes that net/http passes to a connection with ReadFrom. Such bytes can come directly
// from a file, and then the kernel sends them without copying them to the program.
type countedListener struct{}

var handedOver, handingOver atomic.Int64

func (countedListener) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "caddy.listeners.test_counted", New: func() caddy.Module { return new(countedListener) }}
}

func (*countedListener) UnmarshalCaddyfile(d *caddyfile.Dispenser) error { d.Next(); return nil }

func (countedListener) WrapListener(l net.Listener) net.Listener { return counting{l} }

type counting struct{ net.Listener }

func (l counting) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if tcp, ok := c.(*net.TCPConn); ok {
		return countingConn{tcp}, err
	}
	return c, err
}

type countingConn struct{ *net.TCPConn }

func (c countingConn) ReadFrom(r io.Reader) (int64, error) {
	handingOver.Add(1)
	defer handingOver.Add(-1)
	n, err := c.TCPConn.ReadFrom(r)
	handedOver.Add(n)
	return n, err
}

// handed returns how many bytes of an answer were passed with ReadFrom. It waits until the server has counted the last
// bytes. Call it when the client has received the complete answer.
func handed() int64 {
	for handingOver.Load() > 0 {
		time.Sleep(time.Millisecond)
	}
	return handedOver.Load()
}

// If a response is not changed, it goes directly from the file to the connection, in the same way as without
// robots_policy. If the head of a long page is changed, the rest of the page goes directly to the connection, too.
func TestFilesAreHandedOver(t *testing.T) { bothDoors(t, testFilesAreHandedOver) }

func testFilesAreHandedOver(t *testing.T, d door) {
	s := d.startSites(t, conformancePolicy, nil, map[string]string{
		"":          "\tservers {\n\t\tlistener_wrappers {\n\t\t\ttest_counted\n\t\t}\n\t}",
		"bare.test": "root DIR\nfile_server",
		"ours.test": "root DIR\nrobots_policy POLICY\nfile_server",
	})
	image := "\x89PNG\r\n\x1a\n" + strings.Repeat("pixel ", 20<<10)
	download := strings.Repeat("0123456789abcdef", 10<<20/16)
	var long bytes.Buffer
	if err := bigPage(&long, ""); err != nil {
		t.Fatal(err)
	}
	s.file("drafts/image.png", image)
	s.file("drafts/download.bin", download)
	s.file("drafts/page.html", long.String())
	s.file("open/page.html", long.String())
	changed := strings.Replace(long.String(), "<head>", "<head>"+draftElements, 1)
	for path, c := range map[string]struct {
		want  string
		apart int // number of additional bytes that may be copied
	}{
		"/drafts/image.png": {image, 0}, "/drafts/download.bin": {download, 0}, "/open/page.html": {long.String(), 0}, "/drafts/page.html": {changed, 64 << 10},
	} {
		counts := map[string]int64{}
		for _, host := range []string{"bare.test", "ours.test"} {
			handedOver.Store(0)
			r := s.get(path, "Host", host)
			if want := c.want; r.StatusCode != http.StatusOK || r.ContentLength != int64(len(r.body)) || r.body != want && (host == "ours.test" || c.apart == 0) {
				t.Errorf("%s%s: %s, %d bytes of %d", host, path, r.Status, len(r.body), len(want))
			}
			counts[host] = handed()
		}
		if bare, ours := counts["bare.test"], counts["ours.test"]; bare < int64(len(c.want))/2 || ours < bare-int64(c.apart) {
			t.Errorf("%s: %d bytes are passed with ReadFrom, %d without the directive", path, ours, bare)
		}
	}
	for host, part := range map[string]string{"bare.test": download[100:9000], "ours.test": download[100:9000]} {
		if r := s.get("/drafts/download.bin", "Host", host, "Range", "bytes=100-8999"); r.StatusCode != http.StatusPartialContent || r.body != part {
			t.Errorf("%s: a range: %s, %d bytes", host, r.Status, len(r.body))
		}
	}
}
