package github_test

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/macfleet/macfleet/internal/maintest"
	"github.com/macfleet/macfleet/internal/sandbox/github"
)

func TestMain(m *testing.M) { maintest.Main(m) }

// keys are two of an App; making one takes long.
var keys = sync.OnceValue(func() (out [2]*rsa.PrivateKey) {
	for i := range out {
		k, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			panic(err)
		}
		out[i] = k
	}
	return out
})

// start is when GitHub's clock starts.
var start = time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)

// world is one API over a folder whose App has the first key.
type world struct {
	t      *testing.T
	dir    string
	api    *github.API
	server *httptest.Server
	now    time.Time
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), now: start}
	var err error
	w.api, err = github.New(w.dir, github.Options{Now: func() time.Time { return w.now }, Archive: func(version string) []byte { return []byte("archive " + version) }})
	must(t, err)
	data := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(keys()[0])})
	must(t, os.WriteFile(filepath.Join(w.dir, "keys", "github-app.pem"), data, 0o600))
	w.server = httptest.NewServer(w.api)
	t.Cleanup(w.server.Close)
	return w
}

func (w *world) set(change func(*github.Settings)) {
	w.t.Helper()
	must(w.t, w.api.Set(change))
}

// ask sends one request and returns the answer with its body.
func (w *world) ask(credential, request, body string, headers ...string) (*http.Response, string) {
	w.t.Helper()
	method, path, _ := strings.Cut(request, " ")
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.server.URL+path, strings.NewReader(body))
	must(w.t, err)
	r.Header.Set("Authorization", "Bearer "+credential)
	r.Header.Set("X-GitHub-Api-Version", "2022-11-28")
	r.Header.Set("User-Agent", "test")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	client := *w.server.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response, err := client.Do(r)
	must(w.t, err)
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	must(w.t, err)
	return response, string(data)
}

// expect sends one request and compares the status and a part of the answer.
func (w *world) expect(credential, request, body string, status int, contains string) string {
	w.t.Helper()
	response, text := w.ask(credential, request, body)
	if response.StatusCode != status || !strings.Contains(text, contains) {
		w.t.Errorf("%s %s: got %d %s, want %d with %s", request, body, response.StatusCode, text, status, contains)
	}
	return text
}

// jwt returns an App's token with the claims changed; a nil value removes a claim.
func (w *world) jwt(key *rsa.PrivateKey, change map[string]any) string {
	w.t.Helper()
	claims := map[string]any{"iat": w.now.Add(-time.Minute).Unix(), "exp": w.now.Add(5 * time.Minute).Unix(), "iss": "4711"}
	maps.Copy(claims, change)
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	body, err := json.Marshal(claims)
	must(w.t, err)
	text := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"RS256","typ":"JWT"}`)) + "." + base64.RawURLEncoding.EncodeToString(body)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(nil, key, crypto.SHA256, sum[:])
	must(w.t, err)
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// token returns a token of the App's installation.
func (w *world) token(body string) string {
	w.t.Helper()
	response, text := w.ask(w.jwt(keys()[0], nil), "POST /app/installations/7/access_tokens", body)
	if response.StatusCode != 201 {
		w.t.Fatalf("no token: %d %s", response.StatusCode, text)
	}
	var out struct{ Token string }
	w.decode(text, &out)
	return out.Token
}

func (w *world) decode(text string, into any) {
	w.t.Helper()
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	if err := d.Decode(into); err != nil {
		w.t.Fatalf("%v: %s", err, text)
	}
}

// put writes the entry of a runner of the organization acme.
func (w *world) put(id int64, change func(*github.Runner)) {
	w.t.Helper()
	r := github.Runner{ID: id, Scope: "acme", Name: fmt.Sprintf("builder-%d", id), Group: 1, Labels: []string{"Xcode"}, Client: "client", Created: w.now}
	if change != nil {
		change(&r)
	}
	must(w.t, w.api.Put(r))
}

func digest(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }

// must ends the test at the first error.
func must(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}
