// SPDX-License-Identifier: Apache-2.0

// Command nethttp serves the pages of a folder, and applies a policy for crawlers to them, without Caddy:
//
//	go run ./examples/nethttp
//	curl -A GPTBot localhost:8080/
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"

	"github.com/robotspolicy/caddy-robots-policy/handler"
	"github.com/robotspolicy/caddy-robots-policy/source"
)

func main() {
	listen := flag.String("listen", "localhost:8080", "the address to listen on")
	policy := flag.String("policy", "examples/site-policy.yaml", "the policy, read again when it changes")
	folder := flag.String("folder", "examples/site", "the pages")
	flag.Parse()
	log.Fatal(serve(*listen, *policy, *folder))
}

func serve(listen, policy, folder string) error {
	logger := zap.Must(zap.NewProduction())
	var pool source.Pool // the loaded policies
	policies, err := pool.Open(context.Background(), source.Options{Policy: policy, Logger: logger})
	if err != nil {
		return err
	}
	defer policies.Close()

	counts := handler.NewMetrics()
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(counts, &pool)
	robots := handler.New(handler.Options{Policies: policies, Metrics: counts, Logger: logger})

	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	mux.Handle("/", robots.Wrap(http.FileServer(http.Dir(folder))))

	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	fmt.Printf("listening on http://%s\n", l.Addr())
	server := http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	return server.Serve(l)
}
