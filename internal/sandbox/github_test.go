package sandbox_test

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox"
)

// onGitHub is a client of a world's GitHub, as its App.
type onGitHub struct {
	t     testing.TB
	url   string
	token string
}

// gitHub returns a client with a token of the App's installation.
func gitHub(t testing.TB, w *sandbox.World) *onGitHub {
	t.Helper()
	text, err := w.Secret(sandbox.GitHubKeyRef)
	must(t, err)
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		t.Fatal("the key is not in PEM")
	}
	key, err := x509.ParsePKCS1PrivateKey(block.Bytes)
	must(t, err)
	claims := fmt.Sprintf(`{"iss":"4711","iat":%d,"exp":%d}`, time.Now().Add(-time.Minute).Unix(), time.Now().Add(5*time.Minute).Unix())
	signed := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"RS256"}`)) + "." + base64.RawURLEncoding.EncodeToString([]byte(claims))
	sum := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(nil, key, crypto.SHA256, sum[:])
	must(t, err)
	g := &onGitHub{t: t, url: w.GitHubURL(), token: signed + "." + base64.RawURLEncoding.EncodeToString(signature)}
	var made struct{ Token string }
	g.ask("POST /app/installations/7/access_tokens", "", 201, &made)
	g.token = made.Token
	return g
}

// ask sends one request, compares the status, and decodes the answer into out unless it is nil.
func (g *onGitHub) ask(request, body string, status int, out any) {
	g.t.Helper()
	method, path, _ := strings.Cut(request, " ")
	r, err := http.NewRequestWithContext(g.t.Context(), method, g.url+path, strings.NewReader(body))
	must(g.t, err)
	r.Header.Set("Authorization", "Bearer "+g.token)
	response, err := http.DefaultClient.Do(r)
	must(g.t, err)
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != status {
		g.t.Fatalf("%s: %d %s (%v), want %d", request, response.StatusCode, data, err, status)
	}
	if out != nil {
		if err := json.Unmarshal(data, out); err != nil {
			g.t.Fatalf("%s: %v: %s", request, err, data)
		}
	}
}

// TestGitHubOfAWorld checks that a world serves GitHub, that its App's key is the same for every process, and that the
// archive that GitHub offers is the one that Macs download.
func TestGitHubOfAWorld(t *testing.T) {
	t.Parallel()
	w, dir := newWorld(t, 1)
	g := gitHub(t, w)
	var list struct {
		Total int `json:"total_count"`
	}
	if g.ask("GET /orgs/acme/actions/runners", "", 200, &list); list.Total != 0 {
		t.Errorf("%d runners in a new world", list.Total)
	}
	other := gitHub(t, open(t, dir, seed(1)))
	other.ask("GET /repos/acme/app/actions/runners", "", 200, nil)
	if log := accessLog(t, dir, "github "); len(log) == 0 || log[0] != "github POST /app/installations/7/access_tokens 201" {
		t.Errorf("the access log has %q", log)
	}
	var offered []struct {
		OS           string
		Architecture string
		URL          string `json:"download_url"`
		Digest       string `json:"sha256_checksum"`
	}
	g.ask("GET /orgs/acme/actions/runners/downloads", "", 200, &offered)
	for _, one := range offered {
		if one.OS != "osx" || one.Architecture != "arm64" {
			continue
		}
		file, err := w.Download(one.URL)
		must(t, err)
		data, err := io.ReadAll(file)
		if err != nil || fmt.Sprintf("%x", sha256.Sum256(data)) != one.Digest {
			t.Errorf("%s has another digest (%v)", one.URL, err)
		}
		return
	}
	t.Errorf("no archive for these Macs: %+v", offered)
}

// TestGitHubSecret checks that any reference to GitHub's credentials has a value that the world's GitHub accepts, and that
// secrets.json comes first.
func TestGitHubSecret(t *testing.T) {
	t.Parallel()
	w, dir := newWorld(t, 1)
	secret := func(attribute, ref string) string {
		t.Helper()
		text, err := w.GitHubSecret(attribute, ref)
		must(t, err)
		return text
	}
	const item = "op://acme/BUILDERS/"
	first, err := w.Secret(sandbox.GitHubKeyRef)
	if err != nil || secret("private_key", item+"private-key") != first {
		t.Errorf("it is not the key of the App (%v)", err)
	}
	equal(t, secret("private_key", "k8s://macfleet/github/key"), first, "a reference to the cluster")
	if second := secret("previous_private_key", item+"private-key"); second == first || !strings.HasPrefix(second, "-----BEGIN RSA PRIVATE KEY-----") {
		t.Error("the previous key is the same, or no key")
	}
	if app, installation := secret("app_id", item+"app-id"), secret("installation_id", item+"installation-id"); app != "4711" || installation != "7" {
		t.Errorf("ids %q, %q", app, installation)
	}
	g := &onGitHub{t: t, url: w.GitHubURL(), token: secret("token", "env://TOKEN")}
	g.ask("POST /orgs/acme/actions/runners/registration-token", "", http.StatusCreated, nil)
	if secret("token", "env://OTHER") == g.token || secret("token", "env://TOKEN") != g.token {
		t.Error("a token belongs to its reference")
	}
	if _, err := w.GitHubSecret("password", "env://PASSWORD"); err == nil {
		t.Error("another attribute has a value")
	}
	must(t, os.WriteFile(filepath.Join(dir, "secrets.json"), []byte(`{"env://TOKEN": "ghp_other"}`), 0o600))
	equal(t, secret("token", "env://TOKEN"), "ghp_other", "with secrets.json")
}
