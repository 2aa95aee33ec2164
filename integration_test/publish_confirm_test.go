// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"compress/gzip"
	"encoding/json"
	"io/fs"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/activity/store"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

const (
	storedPolicy  = "storage:site/policy.yaml"
	storedBody    = "robots_policy " + storedPolicy + " {\nreload 1h\n}\nrespond hello"
	openPolicy    = "version: 1\nenforcement: {mode: block}\nrules:\n  - for: everyone\n    allow: {crawl: [/]}\n"
	closedPolicy  = openPolicy + "  - for: Googlebot\n    disallow: {crawl: [/news/]}\n"
	googlebotName = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
)

// startStored starts Caddy with a policy in its storage.
func startStored(t *testing.T, global, policy string) *reloading {
	t.Helper()
	s := startReloading(t, "servers {\ntrusted_proxies static 127.0.0.0/8\n}\n"+global, policy, nil, "respond hello")
	s.file("storage/site/policy.yaml", policy)
	if err := s.reconfigure(storedBody); err != nil {
		t.Fatal(err)
	}
	return s
}

// publishes runs the command publish with a file storage. The argument storage is the name of the storage's folder
// below the test's folder. The server under test uses the folder "storage".
func (s *reloading) publishes(storage string, args ...string) (string, int) {
	s.t.Helper()
	s.write("publish.caddyfile", "{\nstorage file_system "+filepath.Join(s.dir, storage)+"\n}\n")
	return caddyExits(s.t, append([]string{
		"robots-policy", "publish", "--to", storedPolicy,
		"--config", filepath.Join(s.dir, "publish.caddyfile"), "--adapter", "caddyfile", "--address", s.admin, "--wait", "3s",
	}, args...)...)
}

// Version 2 allows by mistake a page that version 1 disallowed, and search engines request this page. max_search_loss
// is 0. So a new text that disallows the page again is neither loaded nor reported as published. But if the user undoes
// version 2, version 1 is loaded nevertheless. A second undo would return to the mistake, so the user must confirm it.
func TestUndoCommand(t *testing.T) {
	s := startStored(t, "robots_policy {\nactivity DIR/activity {\nmax_search_loss 0\n}\n}", closedPolicy)
	s.write("new.yaml", openPolicy)
	if out, code := s.publishes("storage", filepath.Join(s.dir, "new.yaml")); code != 0 || !strings.Contains(out, "loaded by the server at "+s.admin) {
		t.Fatalf("exit %d: %s", code, out)
	}
	for range 20 {
		if s.get("/news/", "User-Agent", googlebotName, "X-Forwarded-For", "66.249.66.1").StatusCode != 200 {
			t.Fatal("the page is not allowed")
		}
	}
	eventually(t, "the requests are stored", func() bool {
		r, err := store.OpenReader(t.Context(), filepath.Join(s.dir, "activity"))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		visits, err := r.Crawlers(t.Context())
		return err == nil && len(visits) > 0
	})
	closed := func() bool {
		return s.get("/news/", "User-Agent", googlebotName, "X-Forwarded-For", "66.249.66.1").StatusCode == 403
	}
	for _, step := range []struct {
		name, text string
		args       []string
		code       int
		says       string
		closed     bool
	}{
		{"a new text", closedPolicy + "# new\n", []string{"--yes"}, 3, "no server has confirmed the version: the server at " + s.admin + " did not load the version: Search engines lose 20 requests", false},
		{"undo of what is not loaded", "", []string{"--undo"}, 0, "loaded by the server", false},
		{"undo", "", []string{"--undo"}, 0, "loaded by the server", true},
		{"a second undo", "", []string{"--undo"}, 1, "not published; to return to the text that was undone, give --yes", true},
		{"that is meant", "", []string{"--undo", "--yes"}, 0, "loaded by the server", false},
		{"an older version", "", []string{"--version", "1"}, 0, "This is an undo, so it is published", true},
	} {
		if step.text != "" {
			s.write("new.yaml", step.text)
			step.args = append(step.args, filepath.Join(s.dir, "new.yaml"))
		}
		out, code := s.publishes("storage", step.args...)
		if code != step.code || !strings.Contains(out, step.says) {
			t.Errorf("%s: exit %d: %s", step.name, code, out)
		}
		if step.code == 3 {
			if r := s.sends(step.text); r.StatusCode != http.StatusConflict || !strings.Contains(r.body, "Caddy does not serve it: Search engines lose") {
				t.Errorf("%s: the admin API says %d: %s", step.name, r.StatusCode, r.body)
			}
		}
		if closed() != step.closed {
			t.Errorf("%s: the page is disallowed: %v\n%s", step.name, !step.closed, out)
		}
		if strings.Contains(out, "published as") != (code == 0) {
			t.Errorf("%s: wrong message about publishing, or exit code %d: %s", step.name, code, out)
		}
	}
	// If the published text has errors, the command cannot compare the new text with it. So it is unknown what search
	// engines would lose.
	s.file("storage/site/policy.yaml", "version: 1\nrulez: 1\n")
	if out, code := s.publishes("storage", "--version", "6"); code != 1 || !strings.Contains(out, "the published policy has errors, so the new one cannot be compared with it") {
		t.Errorf("exit %d: %s", code, out)
	}
	if out, code := s.publishes("storage", "--undo"); code != 0 || !closed() {
		t.Errorf("exit %d: %s", code, out)
	}
}

// If the command publish wrote the text to a place where no server reads it, the command does not say that the text is
// published. Its message explains what to do.
func TestPublishedWhereNoServerLooks(t *testing.T) {
	s := startStored(t, "", disallowing("/a"))
	s.write("new.yaml", disallowing("/b"))
	file := filepath.Join(s.dir, "new.yaml")
	place := filepath.Join(s.dir, "other", "site", "policy.yaml")
	written := "written to " + place + " (sha256 " + source.SumOf(disallowing("/b"))[:12] + "), but no server has confirmed the version: "
	if out, code := s.publishes("storage", "--dry-run", filepath.Join(s.dir, "policy.yaml")); code != 0 || !strings.Contains(out, "already contains this policy") || strings.Contains(out, "published as") {
		t.Errorf("exit %d: %s", code, out)
	}
	out, code := s.publishes("other", file, "--yes")
	if code != 3 || !strings.Contains(out, written+"the server at "+s.admin+" serves another version") || !strings.Contains(out, "it uses a different storage") {
		t.Errorf("exit %d: %s", code, out)
	}
	if !s.disallows("/a") {
		t.Error("the server serves another version")
	}
	if !testkit.Thorough() { // slow, because each command starts a program
		return
	}
	socket := filepath.Join(s.dir, "admin.sock")
	for _, c := range []struct{ config, address, says string }{
		{"admin off", "", `no server could be asked, because the configuration has "admin off"; when the server has loaded the policy, its log has the line "policy reloaded"`},
		{"", freeAddr(t), "if the admin API of the server has another address, give it with --address, such as localhost:2019 or unix//run/caddy/admin.sock"},
		{"", "unix/" + socket, "run the command as a user who may use the socket of the admin API"},
		{"admin unix/" + socket, "", "run the command as a user who may use the socket of the admin API"},
	} {
		s.write("publish.caddyfile", "{\n"+c.config+"\nstorage file_system "+filepath.Join(s.dir, "other")+"\n}\n")
		args := []string{"robots-policy", "publish", file, "--yes", "--to", storedPolicy, "--config", filepath.Join(s.dir, "publish.caddyfile"), "--adapter", "caddyfile"}
		if c.address != "" {
			args = append(args, "--address", c.address)
		}
		if out, code := caddyExits(t, args...); code != 3 || !strings.Contains(out, written) || !strings.Contains(out, c.says) {
			t.Errorf("%+v: exit %d: %s", c, code, out)
		}
	}
	s.write("remote.json", `{"admin": {"listen": "`+freeAddr(t)+`", "remote": {}}, "storage": {"module": "file_system", "root": "`+filepath.Join(s.dir, "other")+`"}}`)
	if out, code := caddyExits(t, "robots-policy", "publish", file, "--yes", "--to", storedPolicy, "--config", filepath.Join(s.dir, "remote.json")); code != 3 || !strings.Contains(out, "remote admin needs a client certificate, which this command does not send; run the command on the server") {
		t.Errorf("exit %d: %s", code, out)
	}
	// The text is published to a key that no site uses as its policy.
	s.write("publish.caddyfile", "{\nstorage file_system "+filepath.Join(s.dir, "storage")+"\n}\n")
	out, code = caddyExits(t, "robots-policy", "publish", file, "--to", "storage:other.yaml", "--address", s.admin, "--config", filepath.Join(s.dir, "publish.caddyfile"), "--adapter", "caddyfile")
	if code != 3 || !strings.Contains(out, "no site uses the policy storage:other.yaml; the policies in use are: "+storedPolicy) {
		t.Errorf("exit %d: %s", code, out)
	}
}

// The command publish does not write files into the storage of another user, because the server could not read them.
// Its message contains the command to run instead.
func TestPublishIntoTheStorageOfAnotherUser(t *testing.T) {
	nobody, err := user.Lookup("nobody")
	if err != nil || os.Geteuid() != 0 {
		t.Skip("needs root, and a user nobody")
	}
	s := notRunning(t)
	s.write("new.yaml", disallowing("/a"))
	s.write("publish.caddyfile", "{\nadmin off\nstorage file_system "+filepath.Join(s.dir, "storage")+"\n}\n")
	if err := os.Mkdir(filepath.Join(s.dir, "storage"), 0o700); err != nil {
		t.Fatal(err)
	}
	chown := func(name string) {
		t.Helper()
		var uid int
		if err := json.Unmarshal([]byte(nobody.Uid), &uid); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(filepath.Join(s.dir, name), uid, -1); err != nil {
			t.Fatal(err)
		}
	}
	publish := func() (string, int) {
		return caddyExits(t, "robots-policy", "publish", filepath.Join(s.dir, "new.yaml"), "--to", storedPolicy, "--note", "it's", "--config", filepath.Join(s.dir, "publish.caddyfile"), "--adapter", "caddyfile")
	}
	chown("storage")
	out, code := publish()
	if code != 1 || !strings.Contains(out, "not written: the storage "+filepath.Join(s.dir, "storage")+" belongs to the user nobody") ||
		!strings.Contains(out, "run: sudo -u nobody ") || !strings.Contains(out, ` publish `+filepath.Join(s.dir, "new.yaml")+` --to `+storedPolicy+` --note 'it'\''s'`) {
		t.Errorf("exit %d: %s", code, out)
	}
	if found, err := os.ReadDir(filepath.Join(s.dir, "storage")); err != nil || len(found) > 0 {
		t.Errorf("the storage was changed: %v, %v", found, err)
	}
	// The command also stops if only a part of the storage belongs to another user.
	if err := os.Chown(filepath.Join(s.dir, "storage"), 0, -1); err != nil {
		t.Fatal(err)
	}
	if out, code := publish(); code != 3 {
		t.Fatalf("exit %d: %s", code, out)
	}
	chown("storage/site/policy.yaml")
	if out, code := publish(); code != 1 || !strings.Contains(out, "sudo -u nobody") {
		t.Errorf("exit %d: %s", code, out)
	}
	// The command "crawlers update" writes the catalog into the storage, so it also stops if the storage belongs to
	// another user.
	chown("storage")
	_, catalog, _ := runCommand(t, nil, "crawlers", "export")
	s.write("crawlers.yaml", catalog)
	if out, code := caddyExits(t, "robots-policy", "crawlers", "update", filepath.Join(s.dir, "crawlers.yaml"), "--config", filepath.Join(s.dir, "publish.caddyfile"), "--adapter", "caddyfile"); code != 1 || !strings.Contains(out, "sudo -u nobody") {
		t.Errorf("exit %d: %s", code, out)
	}
}

// In a fleet, the command publish reports a version as published only after the other servers have loaded it, too. It
// ignores a server whose last message in the storage is too old.
func TestPublishWaitsForTheFleet(t *testing.T) {
	s := startStored(t, "robots_policy {\nfleet a {\ninterval 1s\n}\n}", disallowing("/a"))
	other := func(sum string, wrote time.Time) {
		t.Helper()
		s.file("storage/robots_policy/fleet/b.json.gz", "")
		f, err := os.Create(filepath.Join(s.dir, "storage/robots_policy/fleet/b.json.gz"))
		if err != nil {
			t.Fatal(err)
		}
		z := gzip.NewWriter(f)
		if err := json.NewEncoder(z).Encode(map[string]any{"sequence": 1, "policies": map[string]string{storedPolicy: sum}}); err != nil {
			t.Fatal(err)
		}
		if z.Close() != nil || f.Close() != nil || os.Chtimes(f.Name(), wrote, wrote) != nil {
			t.Fatal("the message cannot be written")
		}
	}
	next := disallowing("/b")
	s.write("new.yaml", next)
	file := filepath.Join(s.dir, "new.yaml")
	other("", time.Now())
	if out, code := s.publishes("storage", file, "--yes"); code != 3 || !strings.Contains(out, "not every server has confirmed the version") || !strings.Contains(out, "loaded by a\n") || !strings.Contains(out, "not loaded yet by b") {
		t.Errorf("exit %d: %s", code, out)
	}
	other("", time.Now().Add(-time.Hour))
	if out, code := s.publishes("storage", file); code != 0 || !strings.Contains(out, "not heard from for a while: b") {
		t.Errorf("exit %d: %s", code, out)
	}
	other(source.SumOf(next), time.Now())
	if out, code := s.publishes("storage", file); code != 0 || !strings.Contains(out, "loaded by a and b") {
		t.Errorf("exit %d: %s", code, out)
	}
}

// Programs on this machine can publish a text through the admin API. The API rejects requests that a web page sends in
// a browser, and requests whose Host field names a different host.
func TestPublishThroughTheAdminAPI(t *testing.T) {
	s := startStored(t, "", disallowing("/a"))
	send := func(method, query, text string, header ...string) response {
		t.Helper()
		r, err := http.NewRequest(method, "http://"+s.admin+"/robots_policy/publish?"+query, strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(header); i += 2 {
			if r.Header.Set(header[i], header[i+1]); header[i] == "Host" {
				r.Host = header[i+1]
			}
		}
		resp, body := s.once(r)
		return response{resp, string(body)}
	}
	next := disallowing("/b")
	for _, c := range []struct {
		name, method, query, text string
		header                    []string
		status                    int
		says                      string
	}{
		{"another origin", "POST", "", next, []string{"Origin", "https://evil.example"}, 403, "not allowed"},
		{"an opaque origin", "POST", "", next, []string{"Origin", "null"}, 400, "null Origin"},
		{"a foreign host", "POST", "", next, []string{"Host", "rebound.example:2019"}, 403, "not allowed"},
		{"no-cors", "POST", "", next, []string{"Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Site", "cross-site", "Content-Type", "text/plain"}, 400, ""},
		{"no-cors with the origin of a page", "POST", "", next, []string{"Sec-Fetch-Mode", "no-cors", "Origin", "http://localhost:8080"}, 400, ""},
		{"GET", "GET", "", "", nil, 405, ""},
		{"nothing", "POST", "", "", nil, 400, "the body is empty"},
		{"too much", "POST", "", next + strings.Repeat("#", policyfile.MaxSize), nil, 413, "larger than"},
		{"an error", "POST", "", "version: 1\nrulez: 1\n", nil, 422, "rulez"},
		{"another policy", "POST", "policy=storage:x.yaml", next, nil, 400, storedPolicy},
		{"another version", "POST", "replaces=" + strings.Repeat("0", 64), next, nil, 409, "another version was published in the meantime"},
		{"nothing to undo", "POST", "undo", "", nil, 409, "there is nothing to undo"},
		{"a bad version", "POST", "version=x", "", nil, 400, "invalid version"},
		{"no undo", "POST", "undo=no", "", nil, 400, "set only one of the parameters undo and version; undo has no value, and version has a number, as in version=3"},
		{"an undo and a version", "POST", "undo&version=1", "", nil, 400, "set only one of the parameters undo"},
		{"an undo and a policy", "POST", "undo", next, nil, 400, "cannot be combined with a policy in the body"},
		{"a long note", "POST", "note=" + strings.Repeat("x", 400), next, nil, 400, "note"},
	} {
		out := send(c.method, c.query, c.text, c.header...)
		if out.StatusCode != c.status || !strings.Contains(out.body, c.says) {
			t.Errorf("%s: status %d, want %d: %s", c.name, out.StatusCode, c.status, out.body)
		}
		if !s.disallows("/a") {
			t.Fatalf("%s: published", c.name)
		}
	}
	out := send("POST", "author=ann&note=closes+b&replaces="+source.SumOf(disallowing("/a")), next)
	if out.StatusCode != 200 || !strings.Contains(out.body, `"result": "published"`) || !s.disallows("/b") {
		t.Fatalf("status %d: %s", out.StatusCode, out.body)
	}
	if out := send("POST", "", next); out.StatusCode != 200 || !strings.Contains(out.body, `"result": "unchanged"`) {
		t.Errorf("status %d: %s", out.StatusCode, out.body)
	}
	if data, err := fs.ReadFile(os.DirFS(s.dir), "storage/site/policy.yaml.history"); err != nil || !strings.Contains(string(data), `"by":"ann, through the admin API","note":"closes b"`) {
		t.Errorf("the history: %s, %v", data, err)
	}
	// If the storage fails, the text is not reported as published.
	history := filepath.Join(s.dir, "storage/site/policy.yaml.history")
	if os.Remove(history) != nil || os.Mkdir(history, 0o700) != nil {
		t.Fatal("the history cannot be replaced with a directory")
	}
	if out := send("POST", "", disallowing("/c")); out.StatusCode != 503 || !s.disallows("/b") {
		t.Errorf("status %d: %s", out.StatusCode, out.body)
	}
}

// sends publishes a text through the admin API.
func (s *reloading) sends(text string) response {
	s.t.Helper()
	r, err := http.NewRequest(http.MethodPost, "http://"+s.admin+"/robots_policy/publish", strings.NewReader(text))
	if err != nil {
		s.t.Fatal(err)
	}
	resp, body := s.once(r)
	return response{resp, string(body)}
}
