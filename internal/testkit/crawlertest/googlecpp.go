// SPDX-License-Identifier: Apache-2.0

package crawlertest

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"time"
)

// GoogleCheckout names the environment variable that holds the folder of a checkout of Google's C++ parser
// (github.com/google/robotstxt). The parser is compiled with the system's g++ and Abseil. If the checkout, g++ or
// Abseil is missing, tests leave out Google's parser.
const GoogleCheckout = "GOOGLE_ROBOTSTXT"

// googleLoad is a Python script that compiles the parser once for each state of the checkout, and loads it.
const googleLoad = `
import sys, os, ctypes, hashlib, subprocess, tempfile
d = os.environ["` + GoogleCheckout + `"]
driver = r"""
#include "robots.h"
#include <chrono>
#include <cstdlib>
#include <new>
static double allocations, bytes;
void* operator new(size_t n) {
  ++allocations;
  bytes += n;
  if (void* p = malloc(n)) return p;
  throw std::bad_alloc();
}
void* operator new[](size_t n) { return operator new(n); }
void operator delete(void* p) noexcept { free(p); }
void operator delete(void* p, size_t) noexcept { free(p); }
void operator delete[](void* p) noexcept { free(p); }
void operator delete[](void* p, size_t) noexcept { free(p); }
extern "C" int allowed(const char* body, size_t n, const char* agent, const char* url) {
  googlebot::RobotsMatcher m;
  return m.OneAgentAllowedByRobots(absl::string_view(body, n), agent, url);
}
extern "C" void costs(const char* body, size_t n, const char* agent, const char* url, double seconds, double* out) {
  using clock = std::chrono::steady_clock;
  double rounds = 0, taken = 0;
  allocations = bytes = 0;
  for (auto began = clock::now(); taken < seconds; ++rounds) {
    allowed(body, n, agent, url);
    taken = std::chrono::duration<double>(clock::now() - began).count();
  }
  out[0] = taken * 1e9 / rounds;
  out[1] = allocations / rounds;
  out[2] = bytes / rounds;
}
"""
text = driver.encode() + open(os.path.join(d, "robots.cc"), "rb").read()
so = os.path.join(tempfile.gettempdir(), "google-robotstxt-" + hashlib.sha256(text).hexdigest()[:16] + ".so")
if not os.path.exists(so):
    with tempfile.TemporaryDirectory() as t:
        cc, out = os.path.join(t, "driver.cc"), os.path.join(t, "driver.so")
        open(cc, "w").write(driver)
        flags = subprocess.check_output(["pkg-config", "--cflags", "--libs", "absl_strings", "absl_fixed_array"], text=True).split()
        subprocess.check_call(["g++", "-O2", "-std=c++17", "-shared", "-fPIC", "-I", d, "-o", out, cc, os.path.join(d, "robots.cc")] + flags)
        import shutil
        shutil.copy(out, so + "." + str(os.getpid()))
        os.replace(so + "." + str(os.getpid()), so)
lib = ctypes.CDLL(so)
types = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_char_p]
lib.allowed.argtypes = types
lib.costs.argtypes = types + [ctypes.c_double, ctypes.POINTER(ctypes.c_double)]
`

const googleProbe = googleLoad

// Costs holds the time and memory that one call of a parser takes.
type Costs struct{ Nanoseconds, Allocations, Bytes float64 }

// GoogleCosts measures how long Google's parser takes to read the file body, and to decide whether the crawler token
// may fetch a URL. A separate process repeats these two steps until at least the time in took has passed. The time to
// start this process is not measured. If no checkout is configured, GoogleCosts returns nil.
func GoogleCosts(body, token, url string, took time.Duration) (*Costs, error) {
	if os.Getenv(GoogleCheckout) == "" {
		return nil, nil
	}
	cmd := exec.Command("python3", "-c", googleLoad+`
import json
f = json.load(sys.stdin)
body, out = f["body"].encode(), (ctypes.c_double * 3)()
lib.costs(body, len(body), f["token"].encode(), f["url"].encode(), f["seconds"], out)
print(json.dumps({"Nanoseconds": out[0], "Allocations": out[1], "Bytes": out[2]}))`)
	asked, err := json.Marshal(map[string]any{"body": body, "token": token, "url": url, "seconds": took.Seconds()})
	if err != nil {
		return nil, err
	}
	cmd.Stdin, cmd.Stderr = bytes.NewReader(asked), os.Stderr
	answer, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	c := &Costs{}
	return c, json.Unmarshal(answer, c)
}
