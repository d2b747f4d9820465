package realtailnet

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// get reads a URL through a machine's tailnet.
func (m *machine) get(ctx context.Context, address string) (string, error) {
	transport := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "socks5", Host: "127.0.0.1:" + m.proxy}), DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", err
	}
	answer, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = errors.New(answer.Status)
	}
	return string(text), err
}

// TestMetrics: a real node_exporter is scraped over the tailnet. The grant opens its port in one direction, and nothing
// else.
func TestMetrics(t *testing.T) {
	t.Parallel()
	s := server(t)
	exporting, err := startProcess(t.TempDir()+"/log", nil, exporter(t), "--web.listen-address=127.0.0.1:9100", "--collector.disable-defaults",
		"--collector.cpu", "--collector.loadavg", "--collector.meminfo", "--collector.filesystem", "--collector.time")
	must(t, err)
	t.Cleanup(exporting.stop)
	// Something listens at the closed port as well, so that only the grant can be why it is not reached.
	closed, err := net.Listen("tcp", "127.0.0.1:9101")
	must(t, err)
	web := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "open") })}
	served := make(chan struct{})
	go func() { _ = web.Serve(closed); close(served) }() // ends by Close
	t.Cleanup(func() { _ = web.Close(); <-served })

	host, scraper := s.machine(t, "metrics-1"), s.machine(t, "scraper")
	target, seen := bothJoin(t, host, scraper)

	var page string
	err = await("page of node_exporter over the tailnet", func() (bool, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		var err error
		page, err = scraper.get(ctx, "http://"+target.Self.Addresses[0]+":9100/metrics")
		return err == nil, exporting.ended()
	})
	must(t, err)
	for _, metric := range []string{"node_exporter_build_info{", "node_cpu_seconds_total{", "node_load1 ", "node_time_seconds "} {
		if !strings.Contains(page, "\n"+metric) {
			t.Errorf("the page has no %s", metric)
		}
	}
	tests := []struct {
		what    string
		from    *machine
		address string
	}{
		{"a port outside the grant", scraper, "http://" + target.Self.Addresses[0] + ":9101/"},
		{"the other direction", host, "http://" + seen.Self.Addresses[0] + ":9100/metrics"},
	}
	var refused sync.WaitGroup
	for _, tt := range tests {
		refused.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			if page, err := tt.from.get(ctx, tt.address); err == nil {
				t.Errorf("%s is open: %.100s", tt.what, page)
			}
		})
	}
	refused.Wait()
	// The open port still answers, so the grant refused the two before.
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := scraper.get(ctx, "http://"+target.Self.Addresses[0]+":9100/metrics"); err != nil {
		t.Errorf("scraped again: %v", err)
	}
}

// TestMetricsUnknownFlag: a collector that the binary lacks ends it at once, before anything listens.
func TestMetricsUnknownFlag(t *testing.T) {
	t.Parallel()
	p, err := startProcess(t.TempDir()+"/log", nil, exporter(t), "--web.listen-address=127.0.0.1:0", "--collector.acme")
	must(t, err)
	t.Cleanup(p.stop)
	err = await("end of node_exporter", func() (bool, error) { return p.ended() != nil, nil })
	must(t, err)
	if got := p.ended().Error(); !strings.Contains(got, "unknown long flag '--collector.acme'") {
		t.Error(got)
	}
}
