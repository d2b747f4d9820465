package github

import (
	"fmt"
	"net/url"
	"strings"
)

// Scope is where runners register: an organization, or one repository of it.
type Scope struct {
	Host         string // of the web pages, for example github.com, acme.ghe.com, github.acme.com; empty: github.com
	Organization string // or the user that owns the repository
	Repository   string // without the owner; empty: the runners are the organization's
}

const dotcom = "github.com"

func (s Scope) host() string {
	if s.Host == "" || s.Host == "www."+dotcom {
		return dotcom
	}
	return s.Host
}

// server reports whether it is GitHub Enterprise Server, which has no rule about old runners.
func (s Scope) server() bool { return s.host() != dotcom && !strings.HasSuffix(s.host(), ".ghe.com") }

// API returns the address of the API, with a slash at its end.
func (s Scope) API() string {
	if s.server() {
		return "https://" + s.host() + "/api/v3/"
	}
	return "https://api." + s.host() + "/"
}

// Web returns the address that a runner registers at.
func (s Scope) Web() string { return "https://" + s.host() + "/" + s.String() }

// String returns the organization, or owner/repository.
func (s Scope) String() string {
	if s.Repository == "" {
		return s.Organization
	}
	return s.Organization + "/" + s.Repository
}

// path returns a path below the scope in the API, relative to its address.
func (s Scope) path(format string, args ...any) string {
	rest := fmt.Sprintf(format, args...)
	if s.Repository == "" {
		return "orgs/" + url.PathEscape(s.Organization) + "/" + rest
	}
	return "repos/" + url.PathEscape(s.Organization) + "/" + url.PathEscape(s.Repository) + "/" + rest
}

// orgPermission is the key of the permission that an organization's runners need.
const orgPermission = "organization_self_hosted_runners"

// permission is what an App needs to change runners of the scope: its key in the API, and its name on GitHub's pages.
func (s Scope) permission() (key, name string) {
	if s.Repository == "" {
		return orgPermission, "Self-hosted runners (of the organization)"
	}
	return "administration", "Administration (of the repository)"
}

// thing names the scope in a sentence.
func (s Scope) thing() string {
	if s.Repository == "" {
		return "organization " + s.Organization
	}
	return "repository " + s.String()
}
