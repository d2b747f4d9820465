package main

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// TestDebugSwitchesPrintNoCredential: neither Go's HTTP/2 client nor Scaleway's SDK prints the secret key of a request,
// whatever their variables say. (Only on Linux a variable names the trusted certificates.)
func TestDebugSwitchesPrintNoCredential(t *testing.T) {
	t.Parallel()
	const key = "5eed0000-0000-4000-8000-00000000abcd"
	var second atomic.Bool
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor == 2 && r.Header.Get("X-Auth-Token") == key {
			second.Store(true)
		}
		w.WriteHeader(http.StatusForbidden)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)

	dir := t.TempDir()
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for name, text := range map[string]string{"ca.pem": string(cert), "main.fleet.hcl": bareConfiguration} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	self, err := os.Executable()
	must(t, err)
	cmd := exec.Command(self)
	cmd.Args = []string{"macfleet", "-C", dir, "--ssh-config", "none", "plan"}
	cmd.Env = append(os.Environ(), "SSL_CERT_FILE="+filepath.Join(dir, "ca.pem"), "SCW_API_URL="+server.URL, "SCW_ACCESS_KEY=SCWXXXXXXXXXXXXXXXXX",
		"SCW_SECRET_KEY="+key, "SCW_DEFAULT_PROJECT_ID=5eed0000-0000-4000-8000-000000000001", "HOME="+dir, "SCW_DEBUG=1", "GODEBUG=http2debug=2")
	out, err := cmd.CombinedOutput()
	if err == nil || !second.Load() {
		t.Fatalf("%v; the key was sent over HTTP/2: %v\n%s", err, second.Load(), out)
	}
	for _, part := range []string{key, "http2:", "DEBUG:", key[:8]} {
		if strings.Contains(string(out), part) {
			t.Errorf("prints %q:\n%s", part, out)
		}
	}
}
