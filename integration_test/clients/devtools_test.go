// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// browser is a headless Chromium that is driven by the Chrome DevTools Protocol
// through a pipe: messages are JSON, each with a zero byte at its end.
type browser struct {
	t       *testing.T
	to      io.Writer
	from    *bufio.Reader
	session string
	id      int
	stderr  strings.Builder
}

type message struct {
	ID     int             `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params any             `json:"params,omitempty"`
	Sess   string          `json:"sessionId,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  json.RawMessage `json:"error,omitempty"`
}

// startBrowser runs it until the end of the test, at most three minutes. Every
// name of a host leads it to loopback.
func startBrowser(t *testing.T, program string) *browser {
	t.Helper()
	theirIn, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	b := &browser{t: t, to: in, from: bufio.NewReader(out)}
	cmd := exec.Command(program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
		"--disable-quic", "--no-first-run", "--disable-component-update", "--disable-sync", "--disable-extensions", "--disable-default-apps", "--no-proxy-server",
		"--host-resolver-rules=MAP * 127.0.0.1", "--user-data-dir="+t.TempDir(), "--remote-debugging-pipe", "about:blank")
	cmd.ExtraFiles, cmd.Stderr = []*os.File{theirIn, theirOut}, &b.stderr // 3 and 4
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = theirIn.Close(), theirOut.Close()
	hangs := time.AfterFunc(3*time.Minute, func() { _ = cmd.Process.Kill() })
	t.Cleanup(func() {
		hangs.Stop()
		_ = in.Close() // ends it
		_ = out.Close()
		if time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() }); cmd.Wait() != nil && t.Failed() {
			t.Logf("the browser wrote %.2000s", b.stderr.String())
		}
	})
	var targets struct {
		TargetInfos []struct{ TargetID, Type string }
	}
	b.call("Target.getTargets", nil, &targets)
	for _, target := range targets.TargetInfos {
		if target.Type == "page" && b.session == "" {
			var attached struct{ SessionID string }
			b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
			b.session = attached.SessionID
		}
	}
	if b.session == "" {
		t.Fatalf("the browser has no page: %+v", targets)
	}
	b.call("Page.enable", nil, nil)
	return b
}

// call carries out a method. What happens meanwhile is passed over.
func (b *browser) call(method string, params, result any) {
	b.t.Helper()
	b.id++
	text, err := json.Marshal(message{ID: b.id, Method: method, Params: params, Sess: b.session})
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.to.Write(append(text, 0)); err != nil {
		b.t.Fatal(err)
	}
	for {
		m := b.next()
		if m.ID != b.id {
			continue
		}
		if m.Error != nil {
			b.t.Fatalf("%s: %s", method, m.Error)
		}
		if result != nil {
			if err := json.Unmarshal(m.Result, result); err != nil {
				b.t.Fatal(err)
			}
		}
		return
	}
}

func (b *browser) next() (m message) {
	b.t.Helper()
	text, err := b.from.ReadBytes(0)
	if err != nil {
		b.t.Fatalf("the browser: %v", err)
	}
	if err := json.Unmarshal(text[:len(text)-1], &m); err != nil {
		b.t.Fatal(err)
	}
	return m
}

// open goes to a page, and puts into result what the expression is there.
func (b *browser) open(url, expression string, result any) {
	b.t.Helper()
	var gone struct{ ErrorText string }
	b.call("Page.navigate", map[string]any{"url": url}, &gone)
	if gone.ErrorText != "" {
		b.t.Fatalf("%s: %s", url, gone.ErrorText)
	}
	var value struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	loaded := fmt.Sprintf(`new Promise(done => {
		const look = () => done(%s);
		document.readyState === "complete" ? look() : addEventListener("load", look);
	})`, expression)
	b.call("Runtime.evaluate", map[string]any{"expression": loaded, "returnByValue": true, "awaitPromise": true}, &value)
	if value.ExceptionDetails != nil {
		b.t.Fatalf("%s: %s", url, value.ExceptionDetails)
	}
	if err := json.Unmarshal(value.Result.Value, result); err != nil {
		b.t.Fatal(err)
	}
}
