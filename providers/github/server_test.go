package github_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/macfleet/macfleet/internal/maintest"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/providers/github"
)

func TestMain(m *testing.M) { maintest.Main(m) }

// keys are two of an App; making one takes long.
var keys = sync.OnceValue(func() [2]*rsa.PrivateKey {
	var out [2]*rsa.PrivateKey
	for i := range out {
		k, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			panic(err)
		}
		out[i] = k
	}
	return out
})

// inPEM returns a key as GitHub hands it out, or in PKCS#8.
func inPEM(t *testing.T, k *rsa.PrivateKey, pkcs8 bool) secret.Value {
	t.Helper()
	block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(k)}
	if pkcs8 {
		der, err := x509.MarshalPKCS8PrivateKey(k)
		if err != nil {
			t.Fatal(err)
		}
		block = &pem.Block{Type: "PRIVATE KEY", Bytes: der}
	}
	return value(t, string(pem.EncodeToMemory(block)))
}

func value(t *testing.T, text string) secret.Value {
	t.Helper()
	v, err := secret.New(text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// service is GitHub as a test needs it. Fields are set before the first request.
type service struct {
	t         *testing.T
	now       time.Time                   // of its clock
	accepted  []*rsa.PublicKey            // of the App
	granted   string                      // the permission's level: write, read or empty
	answers   map[string]http.HandlerFunc // by method and path, before the others
	mu        sync.Mutex
	asked     []string                    // method, path and query
	tokens    int                         // made so far; only the last is accepted
	requested []string                    // bodies of requests for tokens
	body      func(*http.Request, string) // called with each body; nil: no call
}

const issuer = "Iv23liacmebuilders"

// client returns a service, and a client of it as an App.
func client(t *testing.T, scope github.Scope) (*service, *github.Client) {
	t.Helper()
	s := &service{t: t, now: time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC), granted: "write", answers: make(map[string]http.HandlerFunc)}
	s.accepted = []*rsa.PublicKey{&keys()[0].PublicKey}
	c := s.as(github.Credentials{App: &github.App{ID: issuer, Keys: []secret.Value{inPEM(t, keys()[0], false)}}}, scope)
	return s, c
}

// as returns a client with other credentials.
func (s *service) as(cr github.Credentials, scope github.Scope) *github.Client {
	s.t.Helper()
	server := httptest.NewServer(s)
	s.t.Cleanup(server.Close)
	s.t.Cleanup(server.Client().CloseIdleConnections)
	c, err := github.New(github.Options{Scope: scope, Credentials: cr, HTTP: server.Client(), URL: server.URL + "/"})
	if err != nil {
		s.t.Fatal(err)
	}
	c.At(s.now)
	c.Sleep(func(time.Duration) {})
	return c
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.body != nil {
		s.body(r, string(body))
	}
	s.asked = append(s.asked, r.Method+" "+r.URL.RequestURI())
	w.Header().Set("Date", s.now.Format(http.TimeFormat))
	w.Header().Set("X-GitHub-Request-Id", fmt.Sprintf("ACME:%d", len(s.asked)))
	if r.Header.Get("X-GitHub-Api-Version") != "2022-11-28" || r.Header.Get("User-Agent") != "macfleet" {
		s.t.Errorf("%s: version %q, agent %q", r.URL, r.Header.Get("X-GitHub-Api-Version"), r.Header.Get("User-Agent"))
	}
	if h := s.answers[r.Method+" "+r.URL.Path]; h != nil {
		h(w, r)
		return
	}
	bearer := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch {
	case strings.HasSuffix(r.URL.Path, "/installation"):
		if s.isApp(w, bearer) {
			say(w, 200, map[string]any{"id": 7})
		}
	case r.URL.Path == "/app/installations/7/access_tokens":
		if !s.isApp(w, bearer) {
			return
		}
		s.requested = append(s.requested, string(body))
		if s.granted == "" || s.granted == "read" && !strings.Contains(string(body), `"read"`) {
			refuse(w, 422, "The permissions requested are not granted to this installation.")
			return
		}
		s.tokens++
		say(w, 201, map[string]any{"token": s.token(), "expires_at": s.now.Add(time.Hour)})
	case bearer != s.token() && bearer != "ghp_static":
		refuse(w, 401, "Bad credentials")
	default:
		refuse(w, 404, "Not Found")
	}
}

func (s *service) token() string { return fmt.Sprintf("ghs_token%d", s.tokens) }

// isApp verifies a JWT as GitHub does, and answers if it is not one.
func (s *service) isApp(w http.ResponseWriter, text string) bool {
	for _, key := range s.accepted {
		token, err := jwt.Parse(text, func(*jwt.Token) (any, error) { return key, nil }, jwt.WithoutClaimsValidation(), jwt.WithValidMethods([]string{"RS256"}))
		if err != nil {
			continue
		}
		iat, _ := token.Claims.GetIssuedAt()
		exp, _ := token.Claims.GetExpirationTime()
		iss, _ := token.Claims.GetIssuer()
		switch {
		case iat.After(s.now):
			refuse(w, 401, "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued")
		case exp.Before(s.now):
			refuse(w, 401, "'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires")
		case exp.Sub(iat.Time) > 10*time.Minute || exp.After(s.now.Add(10*time.Minute)):
			refuse(w, 401, "'Expiration time' claim ('exp') is too far in the future")
		case iss != issuer:
			refuse(w, 401, "Integration not found")
		default:
			return true
		}
		return false
	}
	refuse(w, 401, "A JSON web token could not be decoded")
	return false
}

func say(w http.ResponseWriter, status int, what any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(what)
}

func refuse(w http.ResponseWriter, status int, message string) {
	say(w, status, map[string]any{"message": message, "documentation_url": "https://docs.github.com/rest", "status": fmt.Sprint(status)})
}

// answer sets the answer to one request.
func (s *service) answer(request string, status int, what any) {
	s.answers[request] = func(w http.ResponseWriter, _ *http.Request) { say(w, status, what) }
}

// sent returns the requests so far that contain a text.
func (s *service) sent(containing string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.asked), func(a string) bool { return !strings.Contains(a, containing) })
}
