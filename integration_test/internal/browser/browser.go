// SPDX-License-Identifier: Apache-2.0

// Package browser drives a headless Chromium in tests.
package browser

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

// Browser is a headless Chromium. It is controlled with the Chrome DevTools Protocol through a pipe. Each message is
// JSON and ends with a zero byte.
type Browser struct {
	t       testing.TB
	to      io.Writer
	from    *bufio.Reader
	session string
	id      int
	stderr  strings.Builder

	// On, if not nil, is called with every event.
	On func(method string, params json.RawMessage)
}

type message struct {
	ID     int             `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params any             `json:"params,omitempty"`
	Sess   string          `json:"sessionId,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  json.RawMessage `json:"error,omitempty"`
}

// Start runs a Chromium until the end of the test, for at most eight minutes. It resolves all host names to loopback.
func Start(t testing.TB, program string) *Browser {
	t.Helper()
	theirIn, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	b := &Browser{t: t, to: in, from: bufio.NewReader(out)}
	cmd := exec.Command(program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
		"--disable-quic", "--no-first-run", "--disable-component-update", "--disable-sync", "--disable-extensions", "--disable-default-apps", "--no-proxy-server",
		"--host-resolver-rules=MAP * 127.0.0.1", "--user-data-dir="+t.TempDir(), "--remote-debugging-pipe", "about:blank")
	cmd.ExtraFiles, cmd.Stderr = []*os.File{theirIn, theirOut}, &b.stderr // file descriptors 3 and 4
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = theirIn.Close(), theirOut.Close()
	hangs := time.AfterFunc(8*time.Minute, func() { _ = cmd.Process.Kill() })
	t.Cleanup(func() {
		hangs.Stop()
		_ = in.Close() // ends the browser
		_ = out.Close()
		if time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() }); cmd.Wait() != nil && t.Failed() {
			t.Logf("the browser wrote %.2000s", b.stderr.String())
		}
	})
	var targets struct {
		TargetInfos []struct{ TargetID, Type string }
	}
	b.Call("Target.getTargets", nil, &targets)
	for _, target := range targets.TargetInfos {
		if target.Type == "page" && b.session == "" {
			var attached struct{ SessionID string }
			b.Call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
			b.session = attached.SessionID
		}
	}
	if b.session == "" {
		t.Fatalf("the browser has no page: %+v", targets)
	}
	b.Call("Page.enable", nil, nil)
	return b
}

// Call executes a method of the protocol. Events that arrive before the result are passed to On.
func (b *Browser) Call(method string, params, result any) {
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
			if m.ID == 0 && b.On != nil {
				params, _ := json.Marshal(m.Params)
				b.On(m.Method, params)
			}
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

func (b *Browser) next() (m message) {
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

// Open loads a page, evaluates an expression there, and stores the value in result.
func (b *Browser) Open(url, expression string, result any) {
	b.t.Helper()
	var gone struct{ ErrorText string }
	b.Call("Page.navigate", map[string]any{"url": url}, &gone)
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
	b.Call("Runtime.evaluate", map[string]any{"expression": loaded, "returnByValue": true, "awaitPromise": true}, &value)
	if value.ExceptionDetails != nil {
		b.t.Fatalf("%s: %s", url, value.ExceptionDetails)
	}
	if err := json.Unmarshal(value.Result.Value, result); err != nil {
		b.t.Fatal(err)
	}
}

// Eval evaluates a JavaScript expression on the open page, and stores the value in result. If the expression contains
// ".then(", its value is a promise. Eval then waits for the promise, and stores the promise's result.
func (b *Browser) Eval(expression string, result any) {
	b.t.Helper()
	var value struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	b.Call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": strings.Contains(expression, ".then(")}, &value)
	if value.ExceptionDetails != nil {
		b.t.Fatalf("%.200s: %s", expression, value.ExceptionDetails)
	}
	if result != nil && value.Result.Value != nil {
		if err := json.Unmarshal(value.Result.Value, result); err != nil {
			b.t.Fatal(err)
		}
	}
}

// Screen sets the size of the window in CSS pixels, and selects light or dark colors.
func (b *Browser) Screen(width, height int, dark bool) {
	b.t.Helper()
	b.Call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}, nil)
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	b.Call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

// Screenshot returns a picture as PNG. If whole is true, it shows the complete page, and otherwise the visible part.
func (b *Browser) Screenshot(whole bool) []byte {
	b.t.Helper()
	var shot struct{ Data []byte }
	b.Call("Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": whole}, &shot)
	return shot.Data
}

// Visit loads a page and waits until it is complete. It also works if scripts are switched off, because it does not use
// handlers or promises of the page.
func (b *Browser) Visit(url string) {
	b.t.Helper()
	b.Call("Page.navigate", map[string]any{"url": url}, nil)
	for range 400 {
		var value struct {
			Result struct{ Value json.RawMessage }
		}
		b.Call("Runtime.evaluate", map[string]any{"expression": `document.readyState === "complete" && location.href !== "about:blank"`, "returnByValue": true}, &value)
		if string(value.Result.Value) == "true" {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	b.t.Fatalf("%s does not load", url)
}
