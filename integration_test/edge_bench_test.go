// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// BenchmarkEdgeCPU measures the cost of a blocked request. For comparison, it also measures a request that Caddy passes
// to an upstream with a page of 50 KB, and a request that a matcher with regular expressions blocks. The cost is the
// processor time of a separate Caddy, in µs/op. Run it with -benchtime 20000x, because the clock is too coarse for
// fewer requests.
func BenchmarkEdgeCPU(b *testing.B) {
	dir := b.TempDir()
	bin := filepath.Join(dir, "caddy")
	cmd := exec.Command("go", "build", "-o", bin, "./cmd/caddy")
	cmd.Dir = ".."
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	body := page("") + strings.Repeat("<p>a paragraph of the page that is longer than its head</p>\n", 850)
	up := httptest.NewServer(htmlUpstream(body))
	defer up.Close()
	if err := os.WriteFile(filepath.Join(dir, "policy.yaml"), []byte(slicePolicy), 0o600); err != nil {
		b.Fatal(err)
	}
	tokens := strings.Join(strings.Fields(`AI2Bot Amazonbot anthropic-ai Applebot Bytespider CCBot ChatGPT-User ClaudeBot
		cohere-ai Diffbot FacebookBot FriendlyCrawler GoogleOther ImagesiftBot Meta-ExternalAgent OAI-SearchBot omgili
		PerplexityBot PetalBot Scrapy Timpibot VelenPublicWebCrawler YouBot GPTBot`), "|")
	for _, c := range []struct{ name, site, agent string }{
		{"bare", "reverse_proxy UPSTREAM", gptBot},
		{"blocked", "robots_policy POLICY\nreverse_proxy UPSTREAM", gptBot},
		{"regexp", "@bots header_regexp User-Agent (?i)(" + tokens + ")\nrespond @bots 403\nreverse_proxy UPSTREAM", gptBot},
		{"floor", "respond 403", gptBot},
		{"browser", "robots_policy POLICY\nreverse_proxy UPSTREAM", "Mozilla/5.0 (X11; Linux x86_64; rv:143.0) Gecko/20100101 Firefox/143.0"},
	} {
		b.Run(c.name, func(b *testing.B) {
			addr := startProcess(b, bin, dir, strings.NewReplacer("POLICY", filepath.Join(dir, "policy.yaml"), "UPSTREAM", up.Listener.Addr().String()).Replace(c.site))
			ask(b, addr.host, c.agent, 500) // fills caches and pools
			before := processTime(b, addr.pid)
			b.ResetTimer()
			ask(b, addr.host, c.agent, b.N)
			b.StopTimer()
			b.ReportMetric(float64((processTime(b, addr.pid)-before).Microseconds())/float64(b.N), "µs-cpu/op")
		})
	}
}

type process struct {
	host string
	pid  int
}

func startProcess(b *testing.B, bin, dir, site string) process {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	host := l.Addr().String()
	_ = l.Close()
	file := filepath.Join(dir, "Caddyfile")
	text := "{\nadmin off\nauto_https off\npersist_config off\nlog {\nlevel INFO\n}\n}\nhttp://" + host + " {\n" + site + "\n}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(bin, "run", "--config", file, "--adapter", "caddyfile")
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	cmd.Stdout, cmd.Stderr = io.Discard, io.Discard
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for range 200 {
		if c, err := net.Dial("tcp", host); err == nil {
			_ = c.Close()
			return process{host, cmd.Process.Pid}
		}
		time.Sleep(20 * time.Millisecond)
	}
	b.Fatal("Caddy does not start")
	return process{}
}

// ask sends the given number of requests over a few connections.
func ask(b *testing.B, host, agent string, n int) {
	b.Helper()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8, DisableCompression: true}}
	defer client.CloseIdleConnections()
	var wait sync.WaitGroup
	const workers = 8
	for w := range workers {
		wait.Go(func() {
			for i := w; i < n; i += workers {
				r, _ := http.NewRequest(http.MethodGet, fmt.Sprintf("http://%s/p/%d", host, i%499), nil)
				r.Header.Set("User-Agent", agent)
				resp, err := client.Do(r)
				if err != nil {
					b.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		})
	}
	wait.Wait()
}

// processTime returns the processor time that a process has used.
func processTime(b *testing.B, pid int) time.Duration {
	b.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Skip("needs /proc")
	}
	f := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
	user, _ := strconv.Atoi(f[11])
	system, _ := strconv.Atoi(f[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}
