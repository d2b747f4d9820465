package github

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox/store"
)

// The forms of an installation's token: about 520 characters with a JWT in them, or 40 opaque ones.
const (
	stateless = "stateless"
	opaque    = "opaque"
)

// formHeader lets a client choose the form of a token.
const formHeader = "X-GitHub-Stateless-S2S-Token"

// Kinds of tokens.
const (
	kindInstallation = "installation"
	kindRegistration = "registration"
	kindRemoval      = "removal"
	kindPersonal     = "personal"
)

// classicPrefix begins a personal access token whose scopes GitHub names in each answer.
const classicPrefix = "ghp_"

// hour is how long the tokens of GitHub live.
const hour = time.Hour

// issued is a token that GitHub has issued. The file has its digest; deleting its entry revokes it.
type issued struct {
	Kind         string            `json:"kind"`
	Scope        string            `json:"scope,omitempty"`        // the account or repository; "" = every one
	Repositories []string          `json:"repositories,omitempty"` // to which it is narrowed; none = all
	Permissions  map[string]string `json:"permissions,omitempty"`
	Expires      time.Time         `json:"expires"`
}

func digestOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// issuedTokens returns all tokens by digest. The lock is held.
func (a *API) issuedTokens() (map[string]issued, error) {
	all := map[string]issued{}
	if err := store.ReadJSON(a.path(tokensFile), &all); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return all, nil
}

// issue records a token, and forgets those that have expired.
func (a *API) issue(now time.Time, token string, about issued) error {
	all, err := a.issuedTokens()
	if err != nil {
		return err
	}
	maps.DeleteFunc(all, func(_ string, t issued) bool { return !t.Expires.After(now) })
	all[digestOf(token)] = about
	return store.WriteJSON(a.path(tokensFile), all)
}

// redeem returns what a token of a kind allows, if GitHub has issued it and it has not expired. The lock is held.
func (a *API) redeem(now time.Time, token, kind string) (issued, bool, error) {
	all, err := a.issuedTokens()
	if err != nil || token == "" {
		return issued{}, false, err
	}
	t, ok := all[digestOf(token)]
	return t, ok && t.Kind == kind && t.Expires.After(now), nil
}

// Revoke revokes every token that GitHub has issued.
func (a *API) Revoke() error {
	return a.guarded(func() error { return store.WriteJSON(a.path(tokensFile), map[string]issued{}) })
}

// mint makes a token of an installation, with the permissions and repositories that the request narrows it to.
func (a *API) mint(c *call) (answer, *failure) {
	id, _ := strconv.ParseInt(c.r.PathValue("id"), 10, 64)
	i, scope, failed := c.installationByID(id)
	if failed != nil {
		return answer{}, failed
	}
	var narrow struct {
		Repositories []string          `json:"repositories"`
		Permissions  map[string]string `json:"permissions"`
	}
	if failed := c.read(&narrow); failed != nil {
		return answer{}, failed
	}
	permissions, failed := i.narrowed(narrow.Permissions)
	if failed != nil {
		return answer{}, failed
	}
	for _, repository := range narrow.Repositories {
		if !i.covers(repository) || c.own.missing(i.Account+"/"+repository) {
			return answer{}, invalid("There is at least one repository that does not exist or is not accessible to the parent installation.")
		}
	}
	lives, _ := c.own.TokenLives.or(hour) // checked when read
	token := newToken(c.own, c.r.Header.Get(formHeader), c.now.Add(lives))
	about := issued{Kind: kindInstallation, Scope: scope, Repositories: narrow.Repositories, Permissions: permissions, Expires: c.now.Add(lives)}
	if len(about.Repositories) == 0 {
		about.Repositories = i.Repositories
	}
	if err := a.issue(c.now, token, about); err != nil {
		return answer{}, internal(err)
	}
	body := map[string]any{"token": token, "expires_at": about.Expires.UTC().Format(time.RFC3339), "permissions": permissions,
		"repository_selection": "all"}
	if len(about.Repositories) > 0 {
		body["repository_selection"] = "selected"
	}
	return answer{status: http.StatusCreated, body: body}, nil
}

// installationByID returns an installation, and the account of its tokens. Where the App is installed everywhere, any
// id is one, and its tokens are for every account.
func (c *call) installationByID(id int64) (Installation, string, *failure) {
	if len(c.own.Installations) == 0 && id > 0 {
		return everywhere(""), "", nil
	}
	for _, i := range c.own.Installations {
		if i.ID == id {
			if i.Suspended {
				return i, "", forbidden("This installation has been suspended")
			}
			return i, i.Account, nil
		}
	}
	return Installation{}, "", notFound()
}

// narrowed returns the permissions of a token. More than the installation has cannot be requested.
func (i Installation) narrowed(wanted map[string]string) (map[string]string, *failure) {
	if len(wanted) == 0 {
		return i.Permissions, nil
	}
	for name, level := range wanted {
		if !covers(i.Permissions[name], level) {
			return nil, invalid("The permissions requested are not granted to this installation.")
		}
	}
	return wanted, nil
}

// covers reports whether one level of a permission includes another.
func covers(level, needed string) bool {
	order := []string{"", "read", "write", "admin"}
	return slices.Index(order, level) >= slices.Index(order, needed) && slices.Contains(order[1:], needed)
}

// newToken returns a token in the form that the settings or the client choose.
func newToken(own Settings, chosen string, expires time.Time) string {
	form := own.Tokens
	switch chosen {
	case "enabled":
		form = stateless
	case "disabled":
		form = opaque
	}
	if form == opaque {
		return "ghs_" + random(36)
	}
	head, _ := json.Marshal(map[string]string{"alg": "RS256", "typ": "JWT", "kid": random(8)})
	claims, _ := json.Marshal(map[string]any{"iss": "github.com", "exp": expires.Unix(), "jti": random(16)})
	part := base64.RawURLEncoding.EncodeToString
	return "ghs_1_" + part(head) + "." + part(claims) + "." + random(342) // as long as an RSA signature
}

// random returns letters and digits.
func random(n int) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	for i := range b {
		b[i] = letters[int(b[i])%len(letters)]
	}
	return string(b)
}

// Personal returns a personal access token of an owner, which a name stands for. What it may do is in the settings.
func (a *API) Personal(name string) (string, error) {
	token := classicPrefix + digestOf(name)[:36]
	own, err := a.settings()
	if _, known := own.Personal[token]; known || err != nil {
		return token, err
	}
	return token, a.Set(func(s *Settings) {
		if s.Personal == nil {
			s.Personal = make(map[string]string)
		}
		s.Personal[token] = "write"
	})
}

// bearer returns the credential of a request.
func bearer(r *http.Request) string {
	kind, value, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if strings.EqualFold(kind, "bearer") || strings.EqualFold(kind, "token") {
		return strings.TrimSpace(value)
	}
	return ""
}

// asInstallation serves a request about the runners of an organization or repository.
func (a *API) asInstallation(serve func(*call) (answer, *failure)) func(*call) (answer, *failure) {
	return func(c *call) (answer, *failure) {
		token, failed := a.authenticate(c)
		if failed != nil {
			return answer{}, failed
		}
		c.token = token
		if failed := c.may(); failed != nil {
			return answer{}, failed
		}
		out, failed := serve(c)
		if token.Kind == kindPersonal && strings.HasPrefix(bearer(c.r), classicPrefix) && failed == nil {
			if out.header == nil {
				out.header = http.Header{}
			}
			out.header.Set("X-OAuth-Scopes", "admin:org, repo")
		}
		return out, failed
	}
}

// authenticate returns what the credential of a request allows.
func (a *API) authenticate(c *call) (*issued, *failure) {
	text := bearer(c.r)
	if level, ok := c.own.Personal[text]; ok && text != "" {
		return &issued{Kind: kindPersonal, Permissions: map[string]string{orgPermission: level, repoPermission: level}}, nil
	}
	token, ok, err := a.redeem(c.now, text, kindInstallation)
	if err != nil {
		return nil, internal(err)
	}
	if !ok {
		return nil, badCredentials()
	}
	return &token, nil
}

// may checks that a credential reaches the scope of a request, and that it may do what the request does.
func (c *call) may() *failure {
	account, repository, ofRepository := strings.Cut(c.scope, "/")
	if moved, ok := c.own.Moved[c.scope]; ok {
		where := strings.Replace(c.r.URL.RequestURI(), c.scope, moved, 1)
		return &failure{status: http.StatusMovedPermanently, message: "Moved Permanently", header: http.Header{"Location": {"http://" + c.r.Host + where}}}
	}
	t := c.token
	reaches := t.Scope == "" || strings.EqualFold(t.Scope, account)
	if ofRepository && len(t.Repositories) > 0 && !slices.ContainsFunc(t.Repositories, func(r string) bool { return strings.EqualFold(r, repository) }) {
		reaches = false
	}
	if c.own.missing(c.scope) || !reaches {
		return notFound()
	}
	if i, ok := c.own.installed(c.scope); ok && t.Kind == kindInstallation && i.Suspended {
		return forbidden("This installation has been suspended")
	}
	permission, needed := orgPermission, "read"
	if ofRepository {
		permission = repoPermission
	}
	if c.r.Method != http.MethodGet {
		needed = "write"
	}
	if covers(t.Permissions[permission], needed) {
		return nil
	}
	if t.Kind == kindPersonal {
		return forbidden("Resource not accessible by personal access token")
	}
	return forbidden("Resource not accessible by integration")
}

// registrationToken makes a token by which runners of the scope register.
func (a *API) registrationToken(c *call) (answer, *failure) {
	return a.runnerToken(c, kindRegistration)
}

// removeToken makes a token by which runners of the scope remove themselves.
func (a *API) removeToken(c *call) (answer, *failure) { return a.runnerToken(c, kindRemoval) }

func (a *API) runnerToken(c *call, kind string) (answer, *failure) {
	token := strings.ToUpper("A" + random(28))
	about := issued{Kind: kind, Scope: c.scope, Expires: c.now.Add(hour)}
	if err := a.issue(c.now, token, about); err != nil {
		return answer{}, internal(err)
	}
	return answer{status: http.StatusCreated, body: map[string]any{"token": token, "expires_at": about.Expires.UTC().Format(time.RFC3339)}}, nil
}

// number returns the number in a part of the path.
func (c *call) number(name string) (int64, *failure) {
	n, err := strconv.ParseInt(c.r.PathValue(name), 10, 64)
	if err != nil || n <= 0 {
		return 0, notFound()
	}
	return n, nil
}

// parameter returns a number of the query, or its default.
func (c *call) parameter(name string, otherwise, most int) int {
	n, err := strconv.Atoi(c.r.URL.Query().Get(name))
	if err != nil || n < 1 {
		return otherwise
	}
	return min(n, most)
}
