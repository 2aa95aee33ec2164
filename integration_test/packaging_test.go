// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"go.yaml.in/yaml/v3"

	"github.com/robotspolicy/caddy-robots-policy/integration_test/internal/caddytest"
	"github.com/robotspolicy/caddy-robots-policy/internal/testkit"
	"github.com/robotspolicy/caddy-robots-policy/policyfile"
)

// Each container image of a release is based on an empty image, or on an image with a digest. A name without a digest
// could stand for a different image later, and it would be unknown what a release was made from.
func TestReleaseImagesHaveDigests(t *testing.T) {
	var release struct {
		Images []struct{ Dockerfile string } `yaml:"dockers_v2"`
	}
	text, err := os.ReadFile("../.goreleaser.yaml")
	if err == nil {
		err = yaml.Unmarshal(text, &release)
	}
	if err != nil || len(release.Images) == 0 {
		t.Fatalf("no images: %v", err)
	}
	for _, image := range release.Images {
		text, err := os.ReadFile(filepath.Join("..", image.Dockerfile))
		if err != nil {
			t.Fatal(err)
		}
		bases := regexp.MustCompile(`(?mi)^FROM\s+(?:--platform=\S+\s+)?(\S+)`).FindAllStringSubmatch(string(text), -1)
		if len(bases) == 0 {
			t.Errorf("%s has no base image", image.Dockerfile)
		}
		for _, base := range bases {
			if !regexp.MustCompile(`^scratch$|@sha256:[0-9a-f]{64}$`).MatchString(base[1]) {
				t.Errorf("%s: %s has no digest", image.Dockerfile, base[1])
			}
		}
	}
}

// systemd-analyze does not report any problem in the unit for systemd.
func TestSystemdUnit(t *testing.T) {
	t.Parallel()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("needs systemd-analyze")
	}
	text, err := os.ReadFile("../packaging/systemd/caddy.service")
	if err != nil {
		t.Fatal(err)
	}
	verify := func(text string) string {
		t.Helper()
		unit := filepath.Join(t.TempDir(), "caddy.service")
		// The binary and the user of the unit exist only after the installation, so replace them.
		text = strings.NewReplacer("/usr/local/bin/caddy", "/bin/true", "User=caddy", "User=root", "Group=caddy", "Group=root").Replace(text)
		if err := os.WriteFile(unit, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(analyze, "verify", "--man=no", "--recursive-errors=no", unit).CombinedOutput()
		if err != nil {
			out = append(out, err.Error()...)
		}
		return string(out)
	}
	if out := verify(string(text)); out != "" {
		t.Errorf("systemd-analyze verify: %s", out)
	}
	for _, broken := range []string{"ProtectSystem=strictly", "Tipe=notify", "ExecStart=caddy run"} {
		if verify(string(text)+"\n[Service]\n"+broken+"\n") == "" {
			t.Errorf("%s is not found", broken)
		}
	}
}

// TestPackagingCaddyfiles adapts the Caddyfiles of the recipes, and loads the policies in the manifests for Kubernetes.
func TestPackagingCaddyfiles(t *testing.T) {
	check := func(name, text string) {
		t.Helper()
		if _, warnings, err := adapt(text); err != nil || len(warnings) > 0 {
			t.Errorf("%s: %v %v", name, err, warnings)
		}
		if got := caddyfile.Format([]byte(text)); string(got) != text {
			t.Errorf("%s: caddy fmt changes it to:\n%s", name, got)
		}
	}
	const compose = "../packaging/compose/Caddyfile"
	text, err := os.ReadFile(compose)
	if err != nil {
		t.Fatal(err)
	}
	check(compose, string(text))
	if text, err = os.ReadFile("../packaging/deb/Caddyfile"); err != nil {
		t.Fatal(err)
	}
	check("../packaging/deb/Caddyfile", string(text))
	if text, err = os.ReadFile("../packaging/deb/site-policy.yaml"); err != nil {
		t.Fatal(err)
	}
	if _, ds := policyfile.Load("site-policy.yaml", text); len(ds) > 0 {
		t.Error(ds)
	}
	const manifests = "../packaging/kubernetes/caddy.yaml"
	if text, err = os.ReadFile(manifests); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for d := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var m struct {
			Kind string
			Data map[string]string
		}
		if err := d.Decode(&m); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if m.Kind != "ConfigMap" {
			continue
		}
		seen++
		check(manifests, m.Data["Caddyfile"])
		if _, ds := policyfile.Load(manifests, []byte(m.Data["site-policy.yaml"])); len(ds) > 0 {
			t.Errorf("%s: %v", manifests, ds)
		}
	}
	if seen != 1 {
		t.Errorf("%d ConfigMaps", seen)
	}
	const nix = "../packaging/nix/module.nix"
	if text, err = os.ReadFile(nix); err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?s)virtualHosts\."([^"]*)"\.extraConfig = ''\n(.*?)    '';`).FindSubmatch(text)
	if m == nil {
		t.Fatal("no site in " + nix)
	}
	check(nix, string(m[1])+" {\n\t"+strings.ReplaceAll(strings.TrimSpace(string(m[2])), "\n      ", "\n\t")+"\n}\n")
}

// A package has manual pages, completions and a unit for its own binary.
func TestPackageExtras(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("needs bash")
	}
	dir := filepath.Join(t.TempDir(), "build")
	cmd := caddytest.Command(t.TempDir())
	cmd.Path, cmd.Args = "../packaging/extras", []string{"extras", dir}
	cmd.Env = append(cmd.Env, "CADDY="+os.Args[0])
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, has := range map[string]string{
		"man/caddy-robots-policy-check.8.gz": "", "completions/caddy.bash": "__complete", "completions/_caddy": "#compdef caddy",
		"completions/caddy.fish": "__complete", "caddy.service": "ExecStart=/usr/bin/caddy run ",
	} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || len(data) == 0 || !strings.Contains(string(data), has) {
			t.Errorf("%s: %d bytes without %q, %v", name, len(data), has, err)
		}
	}
	var release struct {
		NFPMs []struct {
			Contents []struct{ Src, Dst string }
		} `yaml:"nfpms"`
	}
	text, err := os.ReadFile("../.goreleaser.yaml")
	if err == nil {
		err = yaml.Unmarshal(text, &release)
	}
	if err != nil || len(release.NFPMs) == 0 {
		t.Fatalf("no packages: %v", err)
	}
	for _, c := range release.NFPMs[0].Contents {
		src := filepath.Join("..", c.Src)
		if made, ok := strings.CutPrefix(c.Src, "build/"); ok {
			src = filepath.Join(dir, made)
		}
		if files, err := filepath.Glob(src); err != nil || len(files) == 0 || !filepath.IsAbs(c.Dst) {
			t.Errorf("no file for %s of the package: %s %v", c.Dst, c.Src, err)
		}
	}
}

// TestPackagingTools checks recipes with the tools that use them, if these are installed.
func TestPackagingTools(t *testing.T) {
	t.Parallel()
	for name, command := range map[string][]string{
		"Kubernetes": {"kubeconform", "-strict", "-schema-location", "packaging/kubernetes/schema/{{ .ResourceKind }}{{ .KindSuffix }}.json", "packaging/kubernetes/caddy.yaml"},
		"Prometheus": {"promtool", "check", "config", "--syntax-only", "packaging/compose/prometheus.yaml"},
		"release":    {"goreleaser", "check"},
	} {
		t.Run(name, func(t *testing.T) {
			program, err := exec.LookPath(command[0])
			if err != nil {
				t.Skipf("%s is not installed", command[0])
			}
			cmd := exec.Command(program, command[1:]...)
			cmd.Dir = ".."
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// TestImage builds Dockerfile.scratch with the test program instead of Caddy, and checks the files in the image.
func TestImage(t *testing.T) {
	testkit.Nightly(t)
	t.Parallel()
	if _, err := exec.LookPath("buildah"); err != nil || os.Getuid() != 0 {
		t.Skip("buildah is not installed, or this user may not use it: apt-get install buildah")
	}
	const name = "robots-policy-test:scratch"
	dir := t.TempDir()
	env := append(os.Environ(), "STORAGE_DRIVER=vfs", "REGISTRY_AUTH_FILE="+filepath.Join(dir, "none"))
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir, cmd.Env = "..", env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	binary := filepath.Join(dir, "caddy")
	if err := os.WriteFile(binary, []byte("#!"), 0o755); err != nil {
		t.Fatal(err)
	}
	run("packaging/image/build", name, binary)
	defer run("buildah", "rmi", name)
	inspected := run("buildah", "inspect", "--type", "image", name)
	for _, want := range []string{`"User": "65532:65532"`, `"/usr/bin/caddy"`, "XDG_DATA_HOME=/data"} {
		if !strings.Contains(inspected, want) {
			t.Errorf("the image lacks %s", want)
		}
	}
}
