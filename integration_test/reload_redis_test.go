// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/certmagic"
)

// redisStorage is a Caddy storage in a real Redis. It supports only what the tests need: reading and writing single
// values.
type redisStorage struct {
	Address string `json:"address"`
}

func init() { caddy.RegisterModule(redisStorage{}) }

func (redisStorage) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "caddy.storage.test_redis", New: func() caddy.Module { return new(redisStorage) }}
}

func (r *redisStorage) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	if !d.AllArgs(&r.Address) {
		return d.ArgErr()
	}
	return nil
}

func (r *redisStorage) CertMagicStorage() (certmagic.Storage, error) { return r, nil }

func (r *redisStorage) String() string { return "redis " + r.Address }

// command sends a command and reads the answer, in version 2 of the protocol. It returns fs.ErrNotExist for a missing
// value.
func (r *redisStorage) command(ctx context.Context, args ...string) (string, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", r.Address)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if at, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(at); err != nil {
			return "", err
		}
	}
	fmt.Fprintf(conn, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(conn, "$%d\r\n%s\r\n", len(a), a)
	}
	in := bufio.NewReader(conn)
	line, err := in.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimRight(line, "\r\n")
	switch line[0] {
	case '+', ':':
		return line[1:], nil
	case '*': // an array of values, returned as lines
		n, err := strconv.Atoi(line[1:])
		if err != nil {
			return "", err
		}
		var values []string
		for range 2 * n {
			value, err := in.ReadString('\n')
			if err != nil {
				return "", err
			}
			values = append(values, strings.TrimSpace(value))
		}
		var list []string
		for i := 1; i < len(values); i += 2 {
			list = append(list, values[i])
		}
		return strings.Join(list, "\n"), nil
	case '$':
		n, err := strconv.Atoi(line[1:])
		if err != nil {
			return "", err
		}
		if n < 0 {
			return "", fs.ErrNotExist
		}
		value := make([]byte, n)
		_, err = io.ReadFull(in, value)
		return string(value), err
	}
	return "", errors.New(line)
}

func (r *redisStorage) Store(ctx context.Context, key string, value []byte) error {
	_, err := r.command(ctx, "SET", key, string(value))
	return err
}

func (r *redisStorage) Load(ctx context.Context, key string) ([]byte, error) {
	value, err := r.command(ctx, "GET", key)
	return []byte(value), err
}

func (r *redisStorage) Delete(ctx context.Context, key string) error {
	_, err := r.command(ctx, "DEL", key)
	return err
}

func (r *redisStorage) Exists(ctx context.Context, key string) bool {
	_, err := r.Load(ctx, key)
	return err == nil
}

func (r *redisStorage) List(ctx context.Context, prefix string, _ bool) ([]string, error) {
	keys, err := r.command(ctx, "KEYS", prefix+"*")
	return strings.Fields(keys), err
}

func (r *redisStorage) Stat(ctx context.Context, key string) (certmagic.KeyInfo, error) {
	value, err := r.Load(ctx, key)
	return certmagic.KeyInfo{Key: key, Size: int64(len(value)), IsTerminal: true}, err
}

func (r *redisStorage) Lock(context.Context, string) error { return nil }

func (r *redisStorage) Unlock(context.Context, string) error { return nil }

// startRedis runs a Redis at addr that saves every write to disk immediately. It returns a function that kills the
// Redis.
func startRedis(t *testing.T, dir, addr string) (kill func()) {
	t.Helper()
	kill, _ = runRedis(t, dir, addr)
	return kill
}

// runRedis does the same as startRedis, and also returns the process.
func runRedis(t *testing.T, dir, addr string) (kill func(), process *os.Process) {
	t.Helper()
	bin, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("redis-server is not installed; on Debian: apt-get install redis-server")
	}
	_, port, _ := net.SplitHostPort(addr)
	cmd := exec.Command(bin, "--bind", "127.0.0.1", "--port", port, "--dir", dir, "--appendonly", "yes",
		"--appendfsync", "always", "--save", "", "--logfile", filepath.Join(dir, "redis.log"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	killed := false
	kill = func() {
		if !killed {
			killed = true
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}
	t.Cleanup(kill)
	r := &redisStorage{Address: addr}
	eventually(t, "Redis answers", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := r.command(ctx, "PING")
		return err == nil
	})
	return kill, cmd.Process
}
