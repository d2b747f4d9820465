package app

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox"
	"github.com/macfleet/macfleet/plan"
)

// TestPinsOutliveLooking: the first Ctrl-C ends what looks. What runs is finished
// after it, and pins its host; the comparison that verifies it reads the pins.
func TestPinsOutliveLooking(t *testing.T) {
	t.Parallel()
	dir, world := filepath.Join("..", "..", "examples", "three-fleets"), t.TempDir()
	var said bytes.Buffer
	nobody := Streams{In: strings.NewReader(""), Out: &said, Err: &said, Now: time.Now}
	stop, interrupt := context.WithCancel(t.Context())
	env := &Env{Streams: nobody, output: output{to: &said}, stop: stop,
		Global: Global{Dir: dir, Environment: "canary", Sandbox: world, SandboxHosts: 1, Parallelism: 1, ObserveParallelism: 1, Starts: 1}}
	if err := InitCluster(t.Context(), env, InitClusterOptions{Approve: true, TokenTTL: shortestToken}); err != nil {
		t.Fatalf("init cluster: %v: %s", err, said.String())
	}
	err := env.with(t.Context(), need{}, func(looking context.Context, s *session) error {
		interrupt()
		<-looking.Done()
		if err := s.engine.Pins.Update(func(all []plan.Pin) []plan.Pin { return all }); err != nil {
			t.Errorf("write the pins: %v", err)
		}
		if _, err := s.engine.Pins.All(); err != nil {
			t.Errorf("read the pins: %v", err)
		}
		return nil
	})
	must(t, err)
}

// TestInitFinishesWhatRuns: a Ctrl-C while the cluster is being prepared leaves
// no half of it, and the public half of the key that was made is printed.
func TestInitFinishesWhatRuns(t *testing.T) {
	world, err := sandbox.Open(t.TempDir(), sandbox.Seed{ClusterUID: "7c3a9f10-2b4d-4e6f-8a91-c0d2e4f60718"})
	must(t, err)
	t.Cleanup(func() {
		if err := world.Close(); err != nil {
			t.Error(err)
		}
	})
	stop, interrupt := context.WithCancel(t.Context())
	cluster := interruptedCluster(t, world, interrupt)
	t.Setenv("KUBECONFIG", cluster)
	t.Setenv("SCW_CONFIG_PATH", filepath.Join(t.TempDir(), "none"))
	for _, name := range []string{"SCW_ACCESS_KEY", "SCW_SECRET_KEY"} { // empty is not the same as unset
		t.Setenv(name, "")
		os.Unsetenv(name)
	}
	dir := t.TempDir()
	example, err := os.ReadFile(filepath.Join("..", "..", "examples", "three-fleets", "main.fleet.hcl"))
	must(t, err)
	// The world has the key of the example already.
	text := strings.Replace(string(example), "macfleet/fleet-ssh/", "macfleet/new-ssh/", 1)
	must(t, os.WriteFile(filepath.Join(dir, "main.fleet.hcl"), []byte(text), 0o600))
	var said bytes.Buffer
	env := &Env{Streams: Streams{In: strings.NewReader(""), Out: &said, Err: io.Discard, Now: time.Now}, output: output{to: &said}, stop: stop, Global: Global{Dir: dir, Environment: "canary"}}
	kubeconfig := filepath.Join(dir, "ci")
	err = InitCluster(t.Context(), env, InitClusterOptions{Approve: true, Kubeconfig: kubeconfig, TokenTTL: shortestToken})
	if stop.Err() == nil {
		t.Fatal("nothing was made, so nothing was interrupted")
	}
	if err == nil || !strings.Contains(err.Error(), "no kubeconfig was written") {
		t.Errorf("error %v", err)
	}
	for _, want := range []string{"Its public half:", "ssh-ed25519 ", "The cluster is prepared"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("%q is not reported:\n%s", want, said.String())
		}
	}
	if _, err := os.Stat(kubeconfig); err == nil {
		t.Error("a kubeconfig was written after the interruption")
	}
}

// interruptedCluster leads to a world's cluster by the kubeconfig that it names, and
// interrupts when the first object is made there.
func interruptedCluster(t *testing.T, world *sandbox.World, interrupt func()) string {
	t.Helper()
	to, err := url.Parse(world.KubernetesURL())
	must(t, err)
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		// The loopback's own kubeconfig sends no token without TLS.
		r.Out.Header.Set("Authorization", "Bearer "+world.KubernetesToken())
		if r.In.Method == http.MethodPost && !strings.Contains(r.In.URL.Path, "/authorization.k8s.io/") {
			interrupt()
		}
	}}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	must(t, err)
	namesLeadHere(t)
	name := filepath.Join(t.TempDir(), "kubeconfig")
	config := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"acme-canary","clusters":[{"name":"x","cluster":{"server":%q}}],`+
		`"contexts":[{"name":"acme-canary","context":{"cluster":"x","user":"x"}}],"users":[{"name":"x","user":{"token":"x"}}]}`, "http://cluster.acme.test:"+port)
	must(t, os.WriteFile(name, []byte(config), 0o600))
	return name
}

// namesLeadHere lets every name lead to the loopback: a kubeconfig for other machines is made of no address of it.
func namesLeadHere(t *testing.T) {
	t.Helper()
	was := net.DefaultResolver
	t.Cleanup(func() { net.DefaultResolver = was })
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		asks, answers := net.Pipe()
		go resolve(answers)
		return asks, nil
	}}
}

// resolve answers one question for addresses, framed as over TCP (RFC 1035, 4.2.2), with 127.0.0.1.
func resolve(c net.Conn) {
	defer c.Close()
	var length [2]byte
	if _, err := io.ReadFull(c, length[:]); err != nil {
		return
	}
	query := make([]byte, binary.BigEndian.Uint16(length[:]))
	if _, err := io.ReadFull(c, query); err != nil || len(query) < 17 {
		return
	}
	end := 12 + bytes.IndexByte(query[12:], 0) + 5 // the name, its type and its class
	answer := append([]byte{query[0], query[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, query[12:end]...)
	if ipv4 := query[end-3] == 1; ipv4 {
		answer[7] = 1
		answer = append(answer, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, 1)
	}
	_, _ = c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...))
}
