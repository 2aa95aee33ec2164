// SPDX-License-Identifier: Apache-2.0

// Package clickhouse is a client for the HTTP interface of ClickHouse 18.16 and later.
package clickhouse

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// Client sends statements to a database in the name of a user. It is safe for concurrent use.
type Client struct {
	URL          string // http or https address; its path is the name of the database
	User         string // empty for the server's default user
	PasswordFile string // file with the password; read again for each request, so that it can be replaced
}

// Check returns an error if a setting of the client is not valid.
func (c *Client) Check() error {
	u, err := url.Parse(c.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") == "" || strings.Contains(strings.Trim(u.Path, "/"), "/") || u.User != nil || u.RawQuery != "" {
		return fmt.Errorf("invalid address %q of ClickHouse: write the address of its HTTP interface, with the database as the path, such as https://clickhouse.example.net:8443/robots. The user and the password have separate options", c.URL)
	}
	if c.PasswordFile != "" && c.User == "" {
		return errors.New("the password_file for ClickHouse is set without a user; set both")
	}
	return nil
}

// Parse parses the address of a database as users give it to commands. The address can have the parameters user and
// password_file.
func Parse(address string) (*Client, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	q := u.Query()
	c := &Client{User: q.Get("user"), PasswordFile: q.Get("password_file")}
	q.Del("user")
	q.Del("password_file")
	u.RawQuery = q.Encode()
	c.URL = u.String()
	return c, c.Check()
}

// Database returns the name of the database.
func (c *Client) Database() string {
	u, err := url.Parse(c.URL)
	if err != nil {
		return ""
	}
	return strings.Trim(u.Path, "/")
}

// transport limits the time to wait for the start of an answer. The context of a request limits the whole request.
var transport = func() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.ResponseHeaderTimeout, t.MaxIdleConnsPerHost = time.Minute, 4
	return t
}()

// maxError limits the length of an error message in bytes.
const maxError = 2000

// do sends a statement, followed by data if data is not nil. The server sends its response only after the statement has
// ended, so the response shows whether the statement failed.
func (c *Client) do(ctx context.Context, statement string, data io.Reader) (io.ReadCloser, error) {
	u, err := url.Parse(c.URL)
	if err != nil {
		return nil, err
	}
	u.RawQuery = url.Values{"database": {c.Database()}, "wait_end_of_query": {"1"}}.Encode()
	u.Path = "/"
	if data != nil {
		u.RawQuery += "&query=" + url.QueryEscape(statement)
	} else {
		data = strings.NewReader(statement)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), data)
	if err != nil {
		return nil, err
	}
	if c.User != "" {
		var password []byte
		if c.PasswordFile != "" {
			if password, err = os.ReadFile(c.PasswordFile); err != nil {
				return nil, fmt.Errorf("the password of ClickHouse: %w", err)
			}
		}
		r.SetBasicAuth(c.User, strings.TrimRight(string(password), "\r\n"))
	}
	resp, err := transport.RoundTrip(r)
	if err != nil {
		return nil, fmt.Errorf("ClickHouse at %s: %w", u.Host, err)
	}
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, maxError))
		_ = resp.Body.Close()
		return nil, fmt.Errorf("ClickHouse at %s: %s: %s", u.Host, resp.Status, bytes.TrimSpace(text))
	}
	return resp.Body, nil
}

// Exec executes a statement that returns no rows.
func (c *Client) Exec(ctx context.Context, statement string) error {
	return c.send(ctx, statement, nil)
}

// Insert adds rows to a table. rows contains one line for each row, in the format TabSeparated; see [Escape].
func (c *Client) Insert(ctx context.Context, table string, columns []string, rows []byte) error {
	return c.send(ctx, "INSERT INTO "+table+" ("+strings.Join(columns, ", ")+") FORMAT TabSeparated", bytes.NewReader(rows))
}

func (c *Client) send(ctx context.Context, statement string, data io.Reader) error {
	body, err := c.do(ctx, statement, data)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, body)
	return errors.Join(err, body.Close())
}

// Query calls the function each for every row that a query returns, with the fields of the row.
func (c *Client) Query(ctx context.Context, query string, each func([]string) error) (err error) {
	body, err := c.do(ctx, query+" FORMAT TabSeparated", nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, body.Close()) }()
	lines := bufio.NewReaderSize(body, 1<<16)
	for {
		line, err := lines.ReadString('\n')
		switch {
		case errors.Is(err, io.EOF) && line == "":
			return nil
		case err != nil:
			return fmt.Errorf("reading the answer of ClickHouse: %w", err)
		}
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		for i := range fields {
			fields[i] = unescaper.Replace(fields[i])
		}
		if err := each(fields); err != nil {
			return err
		}
	}
}
