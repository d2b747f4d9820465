package kubernetes_test

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/macfleet/macfleet/internal/maintest"
	"github.com/macfleet/macfleet/internal/scripttest"
)

// apiserver is the real one, as .ci/apiserver builds it.
const apiserver = "kube-apiserver-v1.36.3"

const adminToken = "an-administrators-token"

// server is a real kube-apiserver with its etcd.
type server struct {
	url string
	ca  []byte

	dir  string
	ends []func()
}

// real is the one server of this test binary: a start takes some three seconds.
var real struct {
	once   sync.Once
	server *server
	err    error
}

var errNoServer = errors.New("no kube-apiserver or etcd: run `make apiserver`, and install Debian's etcd-server")

func TestMain(m *testing.M) {
	remove := maintest.InMemory() // etcd waits for its disk with each write
	code := m.Run()
	if real.server != nil {
		real.server.stop()
	}
	remove()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// realServer returns the running server. Where its programs are missing the test
// is skipped, and fails in CI.
func realServer(t testing.TB) *server {
	t.Helper()
	real.once.Do(func() { real.server, real.err = startServer() })
	if errors.Is(real.err, errNoServer) {
		scripttest.Lacking(t, "%v", real.err)
	}
	if real.err != nil {
		t.Fatal(real.err)
	}
	return real.server
}

func startServer() (*server, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, err
	}
	program := filepath.Join(cmp.Or(os.Getenv("XDG_CACHE_HOME"), filepath.Join(home, ".cache")), "macfleet-test", apiserver)
	etcd, err := exec.LookPath("etcd")
	if err != nil {
		return nil, errNoServer
	}
	if _, err := os.Stat(program); err != nil {
		return nil, errNoServer
	}
	dir, err := os.MkdirTemp("", "macfleet-apiserver-")
	if err != nil {
		return nil, err
	}
	s := &server{dir: dir}
	if err := s.start(etcd, program); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

func (s *server) start(etcd, program string) error {
	ports, err := maintest.Ports(3)
	if err != nil {
		return err
	}
	if err := s.files(); err != nil {
		return err
	}
	client, peer := "http://127.0.0.1:"+ports[0], "http://127.0.0.1:"+ports[1]
	err = s.run("etcd", etcd, "--data-dir="+filepath.Join(s.dir, "etcd"), "--unsafe-no-fsync", "--listen-client-urls="+client,
		"--advertise-client-urls="+client, "--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer,
		"--initial-cluster=default="+peer, "--log-level=error")
	if err != nil {
		return err
	}
	s.url = "https://127.0.0.1:" + ports[2]
	key := filepath.Join(s.dir, "sa.key")
	err = s.run("apiserver", program, "--etcd-servers="+client, "--bind-address=127.0.0.1", "--secure-port="+ports[2],
		"--cert-dir="+filepath.Join(s.dir, "certs"), "--advertise-address=127.0.0.1", "--service-cluster-ip-range=10.96.0.0/16",
		"--service-account-issuer=https://acme.test", "--service-account-key-file="+key, "--service-account-signing-key-file="+key,
		"--authorization-mode=Node,RBAC", "--token-auth-file="+filepath.Join(s.dir, "tokens.csv"),
		"--disable-admission-plugins=ServiceAccount", "--v=0")
	if err != nil {
		return err
	}
	return s.awaitReady()
}

// files writes the key that signs tokens, and the administrator's token.
func (s *server) files() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
	return errors.Join(os.WriteFile(filepath.Join(s.dir, "sa.key"), text, 0o600),
		os.WriteFile(filepath.Join(s.dir, "tokens.csv"), []byte(adminToken+",admin,admin,system:masters\n"), 0o600))
}

// run starts a program that ends with this process, however that ends: the shell
// around it waits for the end of its stdin.
func (s *server) run(name, program string, args ...string) error {
	log, err := os.Create(filepath.Join(s.dir, name+".log"))
	if err != nil {
		return err
	}
	cmd := exec.Command("/bin/sh", append([]string{"-c", `"$@" & p=$!; cat; kill -9 $p; wait $p`, "sh", program}, args...)...)
	cmd.Stdout, cmd.Stderr = log, log
	lifeline, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	s.ends = append(s.ends, func() {
		_ = lifeline.Close()
		_ = cmd.Wait()
		_ = log.Close()
	})
	return nil
}

func (s *server) stop() {
	for i := len(s.ends) - 1; i >= 0; i-- {
		s.ends[i]()
	}
	_ = os.RemoveAll(s.dir)
}

// awaitReady waits for the certificate that the server makes itself, and for its
// own word.
func (s *server) awaitReady() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	pause := time.NewTicker(50 * time.Millisecond)
	defer pause.Stop()
	var last error
	for {
		if s.ca, last = os.ReadFile(filepath.Join(s.dir, "certs", "apiserver.crt")); last == nil {
			if last = s.askReady(ctx); last == nil {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			log, _ := os.ReadFile(filepath.Join(s.dir, "apiserver.log"))
			return fmt.Errorf("kube-apiserver did not start: %w\n%s", last, log)
		case <-pause.C:
		}
	}
}

func (s *server) askReady(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/readyz", nil)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+adminToken)
	transport := trusting(s.ca)
	defer transport.CloseIdleConnections()
	answer, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if text, _ := io.ReadAll(answer.Body); answer.StatusCode != http.StatusOK {
		return fmt.Errorf("it is not ready: %s", text)
	}
	return nil
}
