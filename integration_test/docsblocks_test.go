// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
)

// shownBlock is a fenced block of a page.
type shownBlock struct {
	page     string
	line     int
	language string
	text     string
}

// pagesOfDocs returns the pages of the documentation and the README.
func pagesOfDocs(t *testing.T) (pages []string) {
	t.Helper()
	for _, depth := range []string{"*.md", "*/*.md"} {
		found, err := filepath.Glob(filepath.Join("../docs", depth))
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	return pages
}

// shownBlocks returns the fenced blocks of the README and of all pages.
func shownBlocks(t *testing.T) (blocks []shownBlock) {
	t.Helper()
	for _, page := range append(pagesOfDocs(t), "../README.md", "../CONTRIBUTING.md", "../SECURITY.md", "../packaging/README.md", "README.md") {
		data, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		open := -1
		lines := strings.SplitAfter(string(data), "\n")
		for i, line := range lines {
			if !strings.HasPrefix(line, "```") {
				continue
			}
			if open < 0 {
				open = i
				continue
			}
			blocks = append(blocks, shownBlock{page, open + 1, strings.TrimSpace(strings.Trim(lines[open], "`\n")), strings.Join(lines[open+1:i], "")})
			open = -1
		}
		if open >= 0 {
			t.Errorf("%s:%d: the block has no end", page, open+1)
		}
	}
	return blocks
}

// aligned matches the spaces that align columns in pages.
var aligned = regexp.MustCompile(`(\S)  +`)

// TestBlocksOfThePages checks each code block of the documentation. Configurations must be valid. They must be
// formatted like the output of caddy fmt, except that they may align columns with spaces. Policies must load. Blocks of
// other kinds have their own tests.
func TestBlocksOfThePages(t *testing.T) {
	elsewhere := map[string]string{
		"text": "what commands print: the page's own test", "yaml wrong": "TestDocumentedExamples", "go": "TestEmbedInGo", "html": "read by nobody",
		"json": "TestDirectivePage", "sql": "TestAnalyticsWithClickHouse and TestAnalyticsWithDuckDB", "sh": "TestCommandBlocks", "http": "TestPaymentRequired", "console": "TestCommandBlocks",
	}
	seen := map[string]int{}
	for _, b := range shownBlocks(t) {
		seen[b.language]++
		switch b.language {
		case "caddyfile":
			text := b.text
			if strings.HasPrefix(text, "route ") || strings.HasPrefix(text, "robots_policy_decide ") { // the block is only a part of a site
				text = "example.com {\n" + text + "}\n"
			} else if got := caddyfile.Format([]byte(text)); aligned.ReplaceAllString(text, "$1 ") != string(got) {
				t.Errorf("%s:%d: caddy fmt changes the block to:\n%s", b.page, b.line, got)
			}
			if _, warnings, err := adapt(text); err != nil || len(warnings) > 0 {
				t.Errorf("%s:%d: %v %v", b.page, b.line, err, warnings)
			}
		case "yaml":
			text := b.text
			if strings.HasPrefix(text, "  - ") {
				text = "rules:\n" + text
			}
			if !strings.HasPrefix(text, "version:") {
				text = "version: 1\n" + text
			}
			if _, ds := policyfile.Load(b.page, []byte(text)); ds.HasErrors() {
				t.Errorf("%s:%d: %v", b.page, b.line, ds)
			}
		default:
			if elsewhere[b.language] == "" {
				t.Errorf("%s:%d: no test checks blocks of the kind %q", b.page, b.line, b.language)
			}
		}
	}
	if t.Logf("blocks: %v", seen); seen["caddyfile"] < 20 || seen["yaml"] < 20 {
		t.Error("too few")
	}
}

// notRun lists the command blocks that TestCommandBlocks does not run. The key is the beginning of a block, and the
// value is the reason.
var notRun = map[string]string{
	"git clone ":                         "fetches the repository, which a test already has",
	"go test ":                           "these are the tests",
	"go build ":                          "builds this module, as the tests do",
	"ROBOTSPOLICY_SLOW=1 go test ":       "these are the tests",
	"clickhouse-client ":                 "needs the table of the page in a ClickHouse: TestAnalyticsWithClickHouse",
	"caddy robots-policy activity-schem": "needs a ClickHouse: TestCommandsOnBothEngines",
	"xcaddy build ":                      "takes minutes: TestXcaddyBuild",
	"sudo install ":                      "changes the machine that it runs on: TestOtherServersAsThePagePrints",
	"sudo nginx -t":                      "changes the machine that it runs on: TestOtherServersAsThePagePrints",
	"sudo haproxy -c":                    "changes the machine that it runs on: TestOtherServersAsThePagePrints",
	"sudo dpkg-divert ":                  "changes the machine that it runs on",
	"sudo -u caddy ":                     "needs a user: TestFirstPublication",
	"$ caddy robots-policy history ":     "needs a publication: TestFirstPublication",
	"docker ":                            "needs Docker: the nightly workflow",
	"kubectl ":                           "needs a cluster: TestRecipesValidate",
	"curl -s http://www.example.com/rob": "needs the other server: TestOtherServersAsThePagePrints",
}

// TestCommandBlocks runs the commands in the code blocks of the README and of the other pages, on loopback. It compares
// their output with the output that the page shows. Each command must succeed.
func TestCommandBlocks(t *testing.T) {
	testkit.Slow(t)
	for _, program := range []string{"bash", "curl", "grep", "head"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("needs " + program)
		}
	}
	var readme, live, stopped []shownBlock
	left := map[string]bool{}
	all := 0
blocks:
	for _, b := range shownBlocks(t) {
		if b.language != "sh" && b.language != "console" || ofScenario(b) || b.page == embedPage {
			continue
		}
		all++
		for start := range notRun {
			if strings.HasPrefix(b.text, start) {
				left[start] = true
				continue blocks
			}
		}
		switch {
		case b.page == "../README.md":
			readme = append(readme, b)
		case strings.Contains(b.text, "https://") || strings.Contains(b.text, "localhost:"):
			live = append(live, b)
		default:
			stopped = append(stopped, b)
		}
	}
	t.Logf("%d blocks, and %d of them run", all, len(readme)+len(live)+len(stopped))
	if len(readme) == 0 || len(live) < 5 || len(stopped) < 5 || len(left) != len(notRun) {
		t.Errorf("too few blocks, or an entry of notRun that no block needs: %v", left)
	}

	t.Run("README", func(t *testing.T) {
		site := startExample(t)
		for _, b := range readme {
			runBlock(t, t.TempDir(), b, "localhost:8080", site)
		}
	})
	dir := t.TempDir()
	site, plain, admin := startDocumented(t, dir)
	stop := func() {
		t.Helper()
		if err := caddy.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	stop() // after this, all recorded data has been written
	log, err := os.ReadFile(filepath.Join(dir, "var/log/caddy/access.log"))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "access.log"), log, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range stopped {
		t.Run(filepath.Base(b.page), func(t *testing.T) {
			of := copyOf(t, dir)
			if strings.Contains(b.text, "robots-policy demo ") { // the command needs an empty activity database
				if err := os.RemoveAll(filepath.Join(of, "var")); err != nil {
					t.Fatal(err)
				}
			}
			runBlock(t, of, b)
		})
	}
	config, err := os.ReadFile(filepath.Join(dir, "Caddyfile"))
	if err == nil {
		err = load(string(config))
	}
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	t.Run("live", func(t *testing.T) {
		for _, b := range live {
			t.Run(filepath.Base(b.page), func(t *testing.T) {
				if strings.Contains(b.text, "robots-policy audit ") { // the audit waits a second after each request
					if strings.Contains(b.text, " --as ") && !testkit.Long() {
						t.Skip("takes half a minute: set ROBOTSPOLICY_LONG")
					}
					t.Parallel()
				}
				site := site
				if strings.HasSuffix(b.page, "how-to/import.md") { // the page imports from a site without this module
					site = plain
				}
				runBlock(t, copyOf(t, dir), b, "https://www.example.com", "http://"+site, "http://localhost:8080", "http://"+site, "http://localhost:2019", "http://"+admin)
				if strings.Contains(b.text, "/robots_policy/enforce") { // the switch stays in effect until a configuration is loaded
					if err := load(string(config)); err != nil {
						t.Fatal(err)
					}
				}
			})
		}
	})
}

func copyOf(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Caddyfile", "etc/caddy/Caddyfile"} { // the files contain names of folders, such as the folder of the storage
		config, err := os.ReadFile(filepath.Join(to, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), bytes.ReplaceAll(config, []byte(dir), []byte(to)), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// runBlock runs the commands of a block in a folder. names holds pairs: a text on the page, such as a host name, and
// the text that replaces it in this test.
func runBlock(t *testing.T, dir string, b shownBlock, names ...string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	// With the environment of asCaddyCommand, the test program works as Caddy.
	for name, target := range map[string]string{"bin/caddy": os.Args[0], "examples": "../examples"} {
		path, err := filepath.Abs(target)
		if err == nil {
			err = os.Symlink(path, filepath.Join(dir, name))
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			t.Fatal(err)
		}
	}
	here := strings.NewReplacer(append(names, "go run ./cmd/caddy", "caddy", "/var/l", dir+"/var/l", "/etc/caddy", dir+"/etc/caddy", "/usr/local/", dir+"/usr/local/",
		"robots-policy demo ", "robots-policy demo --days 2 ", // a month takes half a minute
		"robots-policy init\n", "robots-policy init --search yes -o first.yaml\n")...) // without options, init asks questions in a terminal
	back := []string{dir, ""}
	for i := 0; i < len(names); i += 2 {
		back = append(back, names[i+1], names[i])
	}
	run := func(script string) string {
		cmd := asCaddyCommand(filepath.Join(dir, "home"))
		cmd.Path, cmd.Args = "/bin/bash", []string{"bash", "-o", "pipefail", "-ec", here.Replace(script)}
		if p, err := exec.LookPath("bash"); err == nil {
			cmd.Path = p
		}
		cmd.Dir = dir
		cmd.Env = append(cmd.Env, "NO_COLOR=1", "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"), "MANPATH="+dir+"/usr/local/share/man", "MANPAGER=cat")
		out, err := cmd.CombinedOutput()
		const (
			broken      = 128 + 13 // the command was ended by SIGPIPE, because "head" ended before it
			unconfirmed = 3        // exit code of publish if no server uses the storage, and of audit if a page cannot be read
		)
		expected := []int{broken}
		if strings.Contains(script, "robots-policy publish ") && strings.Contains(string(out), "written to ") || strings.Contains(script, "robots-policy audit ") && strings.Contains(string(out), "could not be read") {
			expected = append(expected, unconfirmed)
		}
		if exit := new(exec.ExitError); err != nil && (!errors.As(err, &exit) || !slices.Contains(expected, exit.ExitCode())) {
			t.Errorf("%s:%d: %v\n%s\n%s", b.page, b.line, err, script, out)
		}
		return strings.NewReplacer(back...).Replace(strings.ReplaceAll(string(out), "\r\n", "\n"))
	}
	for _, program := range []string{"jq", "man", "openssl"} {
		if _, err := exec.LookPath(program); err != nil && regexp.MustCompile(`(?m)(^|\| )`+program+` `).MatchString(b.text) {
			t.Skip("needs " + program)
		}
	}
	if b.language == "sh" {
		run(b.text)
		return
	}
	b.compare(t, run)
}

// compare runs the commands of a block, and compares their output with the output in the block.
func (b shownBlock) compare(t *testing.T, run func(command string) string) {
	t.Helper()
	var got strings.Builder
	for line := range strings.Lines(b.text) {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			got.WriteString(line + run(command))
		}
	}
	if *update {
		text, err := os.ReadFile(b.page)
		if err == nil {
			err = os.WriteFile(b.page, bytes.Replace(text, []byte(b.text), []byte(got.String()), 1), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	} else if timeless(got.String()) != timeless(b.text) {
		t.Errorf("%s:%d: the output on the page differs from the output of the commands (-update rewrites it):\n%s", b.page, b.line, firstDifference(timeless(b.text), timeless(got.String())))
	}
}

// timeless returns the text without the digits of days, times and hashes.
func timeless(text string) string {
	return regexp.MustCompile(`\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?Z?)?|\b\d{1,2} [A-Z][a-z]+ 20\d\d(, \d\d:\d\d)?|\b[0-9a-f]{12,}\b|SHA256:[\w+/]+`).ReplaceAllString(text, "…")
}

// startDocumented runs the site that the pages describe, with the example policy, and lets crawlers visit it. It also
// runs a site that has only a robots.txt. It writes all files to dir, including the keys and the new policy that the
// pages use in examples.
func startDocumented(t *testing.T, dir string) (site, plain, admin string) {
	t.Helper()
	site, plain, admin = freeAddr(t), freeAddr(t), freeAddr(t)
	policy, err := os.ReadFile("../examples/site-policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	config := strings.NewReplacer("DIR", dir, "SITE", site, "PLAIN", plain, "ADMIN", admin).Replace(`{
	admin ADMIN
	persist_config off
	auto_https off
	storage file_system DIR/storage
	robots_policy {
		crawler_log
		activity DIR/var/lib/caddy/activity
		evidence DIR/var/lib/caddy/evidence {
			key DIR/etc/caddy/evidence.pem
		}
	}
	log requests {
		include http.robots_policy.crawler_log
		output file DIR/crawlers.log
	}
}

http://SITE {
	log {
		output file DIR/var/log/caddy/access.log
	}
	robots_policy storage:site.yaml
	root ../examples/site
	try_files {path} {path}.html
	file_server
}

http://PLAIN {
	respond /robots.txt <<TXT
		User-agent: *
		Disallow: /admin/
		Allow: /admin/help/

		# no AI
		User-agent: GPTBot
		User-agent: CCBot
		Disallow: /
		TXT
}
`)
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string, der []byte, err error) []byte {
		if err != nil {
			t.Fatal(err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	}
	privateDER, errPrivate := x509.MarshalPKCS8PrivateKey(private)
	publicDER, errPublic := x509.MarshalPKIXPublicKey(public)
	authority := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	authorityDER, errAuthority := x509.CreateCertificate(rand.Reader, authority, authority, public, private)
	for name, data := range map[string][]byte{
		"site-policy.yaml": policy, "storage/site.yaml": policy, "Caddyfile": []byte(config), "etc/caddy/Caddyfile": []byte(config),
		"new.yaml": bytes.Replace(policy, []byte("\nrules:\n"), []byte("\nrules:\n  - for: AhrefsBot\n    disallow: {crawl: /}\n    enforce: block\n"), 1),

		"etc/caddy/evidence.pem": block("PRIVATE KEY", privateDER, errPrivate), "evidence.pub": block("PUBLIC KEY", publicDER, errPublic),
		"authority.pem": block("CERTIFICATE", authorityDER, errAuthority),
	} {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := load(config); err != nil {
		t.Fatal(err)
	}
	const googlebot = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
	for _, visit := range [][2]string{
		{gptBot, "/robots.txt"},
		{gptBot, "/"},
		{gptBot, "/news/bridge.html"},
		{googlebot, "/robots.txt"},
		{googlebot, "/"},
		{"Mozilla/5.0 (compatible; AhrefsBot/7.0; +http://ahrefs.com/robot/)", "/news/bridge.html"},
		{"Mozilla/5.0 (X11; Linux x86_64)", "/"},
	} {
		r, err := http.NewRequest(http.MethodGet, "http://"+site+visit[1], http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("User-Agent", visit[0])
		response, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
	}
	return site, plain, admin
}
