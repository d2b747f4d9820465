package sandbox

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// headerTimeout limits how long a client may take to send its request.
const headerTimeout = 10 * time.Second

// endpoint is an HTTP listener of the world. It listens as soon as the world opens, so that asking for
// its address cannot fail; serving starts with the first request.
type endpoint struct {
	scheme   string
	listener net.Listener
	server   *http.Server

	start   sync.Once
	serving sync.WaitGroup
	calls   calls
}

func listen(handler http.Handler) (*endpoint, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open a port on loopback for the sandbox: %w", err)
	}
	e := &endpoint{scheme: "http://", listener: listener}
	e.server = &http.Server{
		ReadHeaderTimeout: headerTimeout,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !e.calls.begin() {
				http.Error(w, "the sandbox is closed", http.StatusServiceUnavailable)
				return
			}
			defer e.calls.end()
			handler.ServeHTTP(w, r)
		}),
	}
	return e, nil
}

// listenTLS is listen for clients that need TLS.
func listenTLS(handler http.Handler, certificate tls.Certificate) (*endpoint, error) {
	e, err := listen(handler)
	if err != nil {
		return nil, err
	}
	e.scheme, e.listener = "https://", tls.NewListener(e.listener, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12})
	return e, nil
}

func (e *endpoint) url() string {
	e.start.Do(func() {
		e.serving.Go(func() {
			// Serve returns when the endpoint is closed, which is not an error. Other errors show at
			// the client, whose connection is refused.
			_ = e.server.Serve(e.listener)
		})
	})
	return e.scheme + e.listener.Addr().String()
}

func (e *endpoint) close() error {
	e.start.Do(func() {}) // prevents a later start
	e.calls.stop()
	failed := e.server.Close()
	// The server closes the listener only if it serves it.
	if err := e.listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		failed = errors.Join(failed, err)
	}
	e.serving.Wait()
	e.calls.wait()
	return failed
}
