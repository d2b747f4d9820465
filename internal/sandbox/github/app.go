package github

import (
	"bytes"
	"cmp"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox/store"
)

// keyBits is the size of the App's keys, as GitHub makes them.
const keyBits = 2048

// Key returns a key of the App in PEM, as GitHub hands it out once. The first call creates it, since that takes long
// and most worlds need none.
func (a *API) Key(name string) (string, error) {
	if name == "" || name != filepath.Base(name) || filepath.Ext(name) != ".pem" {
		return "", fmt.Errorf("the key %q of the sandbox's GitHub App: its name must end in .pem", name)
	}
	path := a.path(filepath.Join(keysFolder, name))
	var data []byte
	err := a.guarded(func() (err error) {
		if data, err = os.ReadFile(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if data, err = newKey(name); err != nil {
			return err
		}
		return store.WriteFile(path, data)
	})
	if err != nil {
		return "", fmt.Errorf("the key of the sandbox's GitHub App: %w", err)
	}
	return string(data), nil
}

// made are the keys that this process has made, by name: making one takes a tenth of a second, and no two worlds of a
// process need different ones.
var made sync.Map // of func() ([]byte, error)

func newKey(name string) ([]byte, error) {
	once, _ := made.LoadOrStore(name, sync.OnceValues(func() ([]byte, error) {
		key, err := rsa.GenerateKey(rand.Reader, keyBits)
		if err != nil {
			return nil, err
		}
		return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}), nil
	}))
	return once.(func() ([]byte, error))()
}

// IDs returns the id of the App and of its first installation. Where the settings leave them open, any will do.
func (a *API) IDs() (app, installation string, err error) {
	own, err := a.settings()
	if err != nil {
		return "", "", err
	}
	installation = "7"
	if len(own.Installations) > 0 {
		installation = strconv.FormatInt(own.Installations[0].ID, 10)
	}
	return cmp.Or(own.App, "4711"), installation, nil
}

// keys returns the App's keys that GitHub accepts.
func (a *API) keys(own Settings) ([]*rsa.PublicKey, error) {
	paths, err := filepath.Glob(a.path(filepath.Join(keysFolder, "*.pem")))
	if err != nil {
		return nil, err
	}
	var all []*rsa.PublicKey
	for _, path := range paths {
		if slices.Contains(own.RevokedKeys, filepath.Base(path)) {
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		block, _ := pem.Decode(data)
		if block == nil {
			return nil, fmt.Errorf("%s: not a key in PEM; fix: delete it", path)
		}
		key, err := x509.ParsePKCS1PrivateKey(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s: %w; fix: delete it", path, err)
		}
		all = append(all, &key.PublicKey)
	}
	return all, nil
}

// longestApp is how long the token of an App may be valid.
const longestApp = 10 * time.Minute

// asApp serves a request that an App signs.
func (a *API) asApp(serve func(*call) (answer, *failure)) func(*call) (answer, *failure) {
	return func(c *call) (answer, *failure) {
		keys, err := a.keys(c.own)
		if err != nil {
			return answer{}, internal(err)
		}
		claims, ok := verified(bearer(c.r), keys)
		if !ok {
			return answer{}, unauthorized("A JSON web token could not be decoded")
		}
		if failed := c.accepts(claims); failed != nil {
			return answer{}, failed
		}
		return serve(c)
	}
}

// verified returns the claims of a JWT that one of the keys signed.
func verified(text string, keys []*rsa.PublicKey) (map[string]any, bool) {
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return nil, false
	}
	var head struct {
		Alg string `json:"alg"`
	}
	var claims map[string]any
	if !decoded(parts[0], &head) || head.Alg != "RS256" || !decoded(parts[1], &claims) {
		return nil, false
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil {
		return nil, false
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	for _, key := range keys {
		if rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], signature) == nil {
			return claims, true
		}
	}
	return nil, false
}

// decoded decodes a part of a JWT; numbers keep their text.
func decoded(part string, into any) bool {
	data, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil {
		return false
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return d.Decode(into) == nil
}

// accepts checks who an App's token names and when it is valid.
func (c *call) accepts(claims map[string]any) *failure {
	issued, ok := whole(claims["iat"])
	if !ok || issued.After(c.now) {
		return unauthorized("'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued")
	}
	expires, ok := whole(claims["exp"])
	if !ok || !expires.After(c.now) {
		return unauthorized("'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires")
	}
	if expires.Sub(issued) > longestApp {
		return unauthorized("'Expiration time' claim ('exp') is too far in the future")
	}
	if issuer := fmt.Sprint(claims["iss"]); claims["iss"] == nil || issuer == "" || c.own.App != "" && issuer != c.own.App {
		return unauthorized("Integration not found")
	}
	return nil
}

// whole returns the time of a claim, which must be a whole number of seconds.
func whole(claim any) (time.Time, bool) {
	n, ok := claim.(json.Number)
	if !ok {
		return time.Time{}, false
	}
	seconds, err := strconv.ParseInt(n.String(), 10, 64)
	return time.Unix(seconds, 0), err == nil
}

// installation is the App's installation for an organization or repository.
func (a *API) installation(c *call) (answer, *failure) {
	i, ok := c.own.installed(c.scope)
	if !ok {
		return answer{}, notFound()
	}
	return c.shown(i), nil
}

// installationOf is an installation by its id. Where the App is installed everywhere, it names no account.
func (a *API) installationOf(c *call) (answer, *failure) {
	id, failed := c.number("id")
	if failed != nil {
		return answer{}, failed
	}
	if len(c.own.Installations) == 0 {
		i := everywhere("")
		i.ID = id
		return c.shown(i), nil
	}
	for _, i := range c.own.Installations {
		if i.ID == id {
			return c.shown(i), nil
		}
	}
	return answer{}, notFound()
}

// shown answers an installation.
func (c *call) shown(i Installation) answer {
	selection := "all"
	if len(i.Repositories) > 0 {
		selection = "selected"
	}
	out := map[string]any{"id": i.ID, "account": map[string]any{"login": i.Account}, "repository_selection": selection,
		"permissions": i.Permissions, "suspended_at": nil}
	if i.Suspended {
		out["suspended_at"] = c.now.Add(-time.Hour).UTC().Format(time.RFC3339)
	}
	return answer{status: http.StatusOK, body: out}
}

// idOf returns a number that depends only on a text.
func idOf(text string) int64 {
	sum := sha256.Sum256([]byte(text))
	return int64(binary.BigEndian.Uint32(sum[:4])%90_000_000) + 10_000_000
}
