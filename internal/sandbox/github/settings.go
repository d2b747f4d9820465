package github

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox/store"
)

// Settings are how the simulated GitHub behaves. A person creates their file; without it, each has its default.
type Settings struct {
	// App is the id or the client id of the App; "" = any is accepted with a signature of one of its keys.
	App string `json:"app,omitempty"`
	// RevokedKeys are names of the App's keys that GitHub no longer accepts.
	RevokedKeys []string `json:"revoked_keys,omitempty"`
	// Installations are where the App is installed; none = everywhere, with every permission.
	Installations []Installation `json:"installations,omitempty"`
	// Tokens is the form of an installation's tokens: stateless (the default) or opaque.
	Tokens string `json:"tokens,omitempty"`
	// TokenLives is how long an installation's token is accepted; "" = 1h.
	TokenLives Span `json:"token_lives,omitempty"`
	// Personal are personal access tokens, and what each may do with runners: write, read or none.
	Personal map[string]string `json:"personal,omitempty"`
	// Groups are the runner groups of every organization; none = Default only.
	Groups []Group `json:"groups,omitempty"`
	// PerHour is how many requests a credential may send in an hour; 0 = 5000.
	PerHour int `json:"per_hour,omitempty"`
	// Ahead is how far GitHub's clock is ahead of this machine's; it may be negative.
	Ahead Span `json:"ahead,omitempty"`
	// Missing are organizations and repositories that do not exist. All others do.
	Missing []string `json:"missing,omitempty"`
	// PublicRepositories are those that everyone can read, as OWNER/NAME. All others are private.
	PublicRepositories []string `json:"public_repositories,omitempty"`
	// Moved are new names of organizations and repositories by their old ones.
	Moved map[string]string `json:"moved,omitempty"`
	// Flow is the protocol of new registrations: classic (the default) or v2.
	Flow string `json:"flow,omitempty"`
	// Replaced says which id a replaced entry has: kept (the default) or new.
	Replaced string `json:"replaced,omitempty"`
	// NextID is the id of the next runner; 0 = 21.
	NextID int64 `json:"next_id,omitempty"`
}

// Values of settings.
const (
	flowV2        = "v2"
	replacedByNew = "new"
)

// Installation is an account where the App is installed.
type Installation struct {
	ID           int64             `json:"id"`
	Account      string            `json:"account"`                // the organization, or the user
	Repositories []string          `json:"repositories,omitempty"` // names without the owner; none = all
	Permissions  map[string]string `json:"permissions"`            // write or read, by name
	Suspended    bool              `json:"suspended,omitempty"`
}

// Permissions that runners need.
const (
	orgPermission  = "organization_self_hosted_runners"
	repoPermission = "administration"
)

// Group is a runner group of an organization. With the visibility "selected", only the listed repositories use it.
type Group struct {
	ID           int64    `json:"id"`
	Name         string   `json:"name"`
	Visibility   string   `json:"visibility"`
	Public       bool     `json:"public,omitempty"` // public repositories may use it
	Repositories []string `json:"repositories,omitempty"`
}

// serves reports whether jobs of a repository, named without its owner, may run on the group's runners.
func (g Group) serves(repository string) bool {
	if g.Visibility != "selected" {
		return true
	}
	for _, one := range g.Repositories {
		if strings.EqualFold(one, repository) {
			return true
		}
	}
	return false
}

// defaultGroup is the id of the group that every organization has.
const defaultGroup = 1

// groups returns the runner groups.
func (s Settings) groups() []Group {
	if len(s.Groups) == 0 {
		return []Group{{ID: defaultGroup, Name: "Default", Visibility: "all"}}
	}
	return s.Groups
}

func (s Settings) group(id int64) (Group, bool) {
	for _, g := range s.groups() {
		if g.ID == id {
			return g, true
		}
	}
	return Group{}, false
}

// Span is a duration as text, such as 3s or -2m. "" is the default.
type Span string

func (s Span) or(otherwise time.Duration) (time.Duration, error) {
	if s == "" {
		return otherwise, nil
	}
	return time.ParseDuration(string(s))
}

// settings reads the settings.
func (a *API) settings() (Settings, error) {
	var own Settings
	if err := store.ReadJSON(a.path(settingsFile), &own); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return own, err
	}
	for name, span := range map[string]Span{"token_lives": own.TokenLives, "ahead": own.Ahead} {
		if _, err := span.or(0); err != nil {
			return own, fmt.Errorf("%s: %s: %w; use a duration such as 3s", a.path(settingsFile), name, err)
		}
	}
	for name, choice := range map[string][3]string{"tokens": {own.Tokens, stateless, opaque}, "flow": {own.Flow, "classic", flowV2}, "replaced": {own.Replaced, "kept", replacedByNew}} {
		if choice[0] != "" && choice[0] != choice[1] && choice[0] != choice[2] {
			return own, fmt.Errorf("%s: %s: %q is neither %s nor %s", a.path(settingsFile), name, choice[0], choice[1], choice[2])
		}
	}
	return own, nil
}

// Set changes the settings.
func (a *API) Set(change func(*Settings)) error {
	return a.guarded(func() error { return a.set(change) })
}

// set is Set with the lock held.
func (a *API) set(change func(*Settings)) error {
	own, err := a.settings()
	if err != nil {
		return err
	}
	change(&own)
	return store.WriteJSON(a.path(settingsFile), own)
}

// guarded does something with the lock held.
func (a *API) guarded(do func() error) error {
	unlock, err := a.lock.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	return do()
}

// installed returns the App's installation for a scope.
func (s Settings) installed(scope string) (Installation, bool) {
	account, repository, _ := strings.Cut(scope, "/")
	if s.missing(scope) {
		return Installation{}, false
	}
	if len(s.Installations) == 0 {
		return everywhere(account), true
	}
	for _, i := range s.Installations {
		if strings.EqualFold(i.Account, account) && (repository == "" || i.covers(repository)) {
			return i, true
		}
	}
	return Installation{}, false
}

// everywhere is the installation of an App that is installed on every account.
func everywhere(account string) Installation {
	return Installation{ID: idOf("installation " + strings.ToLower(account)), Account: account,
		Permissions: map[string]string{orgPermission: "write", repoPermission: "write", "metadata": "read"}}
}

func (i Installation) covers(repository string) bool {
	if len(i.Repositories) == 0 {
		return true
	}
	for _, one := range i.Repositories {
		if strings.EqualFold(one, repository) {
			return true
		}
	}
	return false
}

// missing reports whether an organization or repository does not exist.
func (s Settings) missing(scope string) bool {
	account, _ := path.Split(scope)
	account = strings.TrimSuffix(account, "/")
	for _, gone := range s.Missing {
		if strings.EqualFold(gone, scope) || account != "" && strings.EqualFold(gone, account) {
			return true
		}
	}
	return false
}
