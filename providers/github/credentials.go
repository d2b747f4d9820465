package github

import (
	"crypto/rsa"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/macfleet/macfleet/internal/secret"
)

// App is a GitHub App that is installed on the organization or repository.
type App struct {
	ID           string         // its id or its client id
	Installation string         // the installation's id; empty: it is looked up
	Keys         []secret.Value // in PEM, PKCS#1 or PKCS#8; two while they are rotated, of which one may be revoked
}

// Credentials are an App, or a token that was made elsewhere: a personal access token, or one for a single run.
type Credentials struct {
	App   *App
	Token secret.Value
}

// maxKeys is how many keys of an App are in use while they are rotated.
const maxKeys = 2

// parsed is an App whose fields were checked.
type parsed struct {
	issuer       string
	installation int64 // 0: it is looked up
	keys         []*rsa.PrivateKey
}

// issuers are ids and client ids of Apps. Both appear in messages, so that anything else, such as a client secret, must not
// pass as one.
var issuers = regexp.MustCompile(`^([0-9]{1,20}|Iv[0-9A-Za-z.]{8,40})$`)

// The attributes of an App in a configuration. The keys are in the order in which they are tried.
const (
	AppID          = "app_id"
	InstallationID = "installation_id"
	PrivateKey     = "private_key"
	PreviousKey    = "previous_private_key"
)

// Faults returns what is wrong with an App, by attribute. None holds a part of a key.
func (a App) Faults() map[string]error {
	_, faults := a.parse()
	return faults
}

func (a App) parse() (parsed, map[string]error) {
	p := parsed{issuer: strings.TrimSpace(a.ID)}
	faults := make(map[string]error)
	if !issuers.MatchString(p.issuer) {
		faults[AppID] = errors.New("it is neither the id nor the client id of an App; fix: copy it from the App's page at GitHub")
	}
	if text := strings.TrimSpace(a.Installation); text != "" {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil || id <= 0 {
			faults[InstallationID] = errors.New("it is not a number; fix: copy the number at the end of the installation's address, or leave it out")
		}
		p.installation = id
	}
	if len(a.Keys) == 0 || len(a.Keys) > maxKeys {
		faults[PrivateKey] = fmt.Errorf("there are %d keys; fix: give one, or two while they are rotated", len(a.Keys))
		return p, faults
	}
	for i, k := range a.Keys {
		key, err := jwt.ParseRSAPrivateKeyFromPEM([]byte(k.Reveal()))
		if err != nil {
			faults[[]string{PrivateKey, PreviousKey}[i]] = errors.New("it is not an RSA key in PEM; fix: use the file that GitHub's page of the App generates, unchanged")
			continue
		}
		p.keys = append(p.keys, key)
	}
	return p, faults
}

// JoinFaults returns the faults of an App's attributes as one error, in the order in which they are configured; nil: none.
func JoinFaults(faults map[string]error) error {
	var all joined
	var fixes []string
	for _, attribute := range []string{AppID, InstallationID, PrivateKey, PreviousKey} {
		if err := faults[attribute]; err != nil {
			all.errs = append(all.errs, err)
			text, fix, _ := strings.Cut(err.Error(), "; fix: ")
			all.texts = append(all.texts, attribute+": "+text)
			if fix != "" && !slices.Contains(fixes, fix) {
				fixes = append(fixes, fix)
			}
		}
	}
	if all.errs == nil {
		return nil
	}
	if fixes == nil {
		fixes = []string{"correct the App's values in the configuration, or what they refer to"}
	}
	all.fix = strings.Join(fixes, "; ")
	return &all
}

// joined are several faults in one sentence, with all fixes at its end.
type joined struct {
	texts []string
	fix   string
	errs  []error
}

// Error returns all texts, and then all fixes.
func (j *joined) Error() string { return strings.Join(j.texts, "; ") + "; fix: " + j.fix }

// Unwrap returns the faults.
func (j *joined) Unwrap() []error { return j.errs }

// A JWT is valid for eight minutes, of which two have passed when it is made: GitHub accepts no more than ten, and a
// clock may differ by a minute.
const (
	early = 2 * time.Minute
	late  = 6 * time.Minute
)

// sign returns a JWT, by which GitHub knows the App.
func (p parsed) sign(key *rsa.PrivateKey, now time.Time) (secret.Value, error) {
	text, err := jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.RegisteredClaims{Issuer: p.issuer,
		IssuedAt: jwt.NewNumericDate(now.Add(-early)), ExpiresAt: jwt.NewNumericDate(now.Add(late))}).SignedString(key)
	if err != nil {
		return secret.Value{}, fmt.Errorf("sign as the App %s: %w", p.issuer, err)
	}
	return secret.New(text)
}
