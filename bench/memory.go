// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/robotspolicy/caddy-robots-policy/bench/internal/workload"
)

// streams is the number of slow clients that read a long page at the same time, each at
// streamRate octets a second.
const (
	streams    = 64
	streamRate = 5 << 20
)

// memoryUse is the resident memory of a row, in octets.
type memoryUse struct {
	idle, peak int
}

// perStream returns the additional memory for each stream.
func (m memoryUse) perStream() float64 { return float64(m.peak-m.idle) / streams }

// streaming measures the memory of a row while many clients read slowly. Call streaming before the row has answered
// many requests. Otherwise the peak may come from those requests.
func streaming(ctx context.Context, r *row) (use memoryUse, err error) {
	if err := resetPeak(r.pid()); err != nil {
		return use, err
	}
	if use.idle, err = memory(r.pid(), "VmRSS"); err != nil {
		return use, err
	}
	var all sync.WaitGroup
	failed := make([]error, streams)
	long, err := workload.ByName([]string{"stream"})
	if err != nil {
		return use, err
	}
	requests := long[0].Requests("")
	for n := range streams {
		all.Go(func() { failed[n] = readSlowly(ctx, r.addr(), requests[n]) })
	}
	all.Wait()
	if err := errors.Join(failed...); err != nil {
		return use, fmt.Errorf("%s, slow readers: %w", r.Name, err)
	}
	use.peak, err = memory(r.pid(), "VmHWM")
	return use, err
}

func readSlowly(ctx context.Context, addr string, request []byte) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if err := conn.(*net.TCPConn).SetReadBuffer(64 << 10); err != nil { // otherwise the kernel receives much of the page ahead of the reader
		return err
	}
	conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err := conn.Write(request); err != nil {
		return err
	}
	resp, err := http.ReadResponse(bufio.NewReaderSize(conn, 16<<10), nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	began := time.Now()
	for total := int64(0); ; {
		n, err := io.CopyN(io.Discard, resp.Body, 32<<10)
		total += n
		if err == io.EOF {
			if size := int64(len(workload.BodyOf("/long/", false).Data)); total < size {
				return fmt.Errorf("%d octets of %d", total, size)
			}
			return nil
		}
		if err != nil {
			return err
		}
		time.Sleep(time.Until(began.Add(time.Duration(float64(total) / streamRate * float64(time.Second)))))
	}
}
