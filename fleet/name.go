package fleet

import (
	"fmt"
	"regexp"
	"strings"
)

// MaxName is the longest name a server may have: it becomes a Node name, a DNS
// label and a tailnet name.
const MaxName = 63

// SuffixLength is how many characters of the server id end a name.
const SuffixLength = 5

var (
	ownerPattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)
	partPattern  = regexp.MustCompile(`^[a-z0-9]+$`)
	hexPattern   = regexp.MustCompile(`^[0-9a-f]{5}$`)
)

// Owner is whose servers these are: the configuration's name and the
// environment, which may be empty where a directory defines none.
type Owner struct {
	Name        string
	Environment string
}

// String returns the prefix of all names that o owns, without its last hyphen.
func (o Owner) String() string {
	if o.Environment == "" {
		return o.Name
	}
	return o.Name + "-" + o.Environment
}

// HostName returns the name of a server in a group:
// <name>-<environment>-<fleet>-<group>-<first 5 hex characters of the id>.
func (o Owner) HostName(fleet, group, serverID string) string {
	return strings.Join([]string{o.String(), fleet, group, suffix(serverID)}, "-")
}

// Place is what an owned name says.
type Place struct{ Fleet, Group, Suffix string }

// Parse reads a server's name. It reports false for a name that o does not own:
// the name is taken apart from the right, and what is left is compared whole,
// so that "acme" never owns "acme-prod-…".
func (o Owner) Parse(name string) (Place, bool) {
	rest, suffix, ok := cutLast(name)
	if !ok || !hexPattern.MatchString(suffix) {
		return Place{}, false
	}
	rest, group, ok := cutLast(rest)
	if !ok || !partPattern.MatchString(group) {
		return Place{}, false
	}
	owner, fleet, ok := cutLast(rest)
	if !ok || !partPattern.MatchString(fleet) || owner != o.String() {
		return Place{}, false
	}
	return Place{Fleet: fleet, Group: group, Suffix: suffix}, true
}

// PoolConflict returns why prefix cannot name a pool beside o's servers, or "".
// A pool name that parses as an owned one, or an owned one that starts with the
// prefix, would make a member look free to be claimed.
func (o Owner) PoolConflict(prefix string) string {
	owned := o.String() + "-"
	switch {
	case strings.HasPrefix(owned, prefix):
		return fmt.Sprintf("every server of %s would count as one of the pool", o)
	case strings.HasPrefix(prefix, owned) && ownable(strings.TrimPrefix(prefix, owned)):
		return fmt.Sprintf("a pool server could bear a name that belongs to %s, such as %q", o, sample(owned, prefix))
	}
	return ""
}

// CheckOwnerPart returns why text cannot be a configuration's or environment's
// name, or "".
func CheckOwnerPart(text string) string {
	if !ownerPattern.MatchString(text) {
		return "it must be lower-case letters, digits and hyphens, and begin and end with a letter or digit"
	}
	return ""
}

// CheckPart returns why text cannot name a fleet or a group, or "".
func CheckPart(text string) string {
	if !partPattern.MatchString(text) {
		return "it must be lower-case letters and digits without a hyphen, because server names are taken apart at hyphens"
	}
	return ""
}

// ownable reports whether some text that begins with start can be the
// "<fleet>-<group>-<suffix>" of an owned name.
func ownable(start string) bool {
	parts := strings.Split(start, "-")
	if len(parts) > 3 {
		return false
	}
	for i, p := range parts {
		last := i == len(parts)-1
		switch {
		case p == "":
			if !last {
				return false
			}
		case i == 2:
			return strings.Trim(p, "0123456789abcdef") == "" && len(p) <= SuffixLength
		case !partPattern.MatchString(p):
			return false
		}
	}
	return true
}

// sample completes prefix to an owned name.
func sample(owned, prefix string) string {
	parts := strings.Split(strings.TrimPrefix(prefix, owned), "-")
	for len(parts) < 3 {
		parts = append(parts, "")
	}
	for i, filler := range []string{"x", "x", "0a1b2"} {
		if i == 2 {
			parts[i] += filler[len(parts[i]):]
		} else if parts[i] == "" {
			parts[i] = filler
		}
	}
	return owned + strings.Join(parts, "-")
}

func suffix(serverID string) string {
	if len(serverID) > SuffixLength {
		serverID = serverID[:SuffixLength]
	}
	return strings.ToLower(serverID)
}

func cutLast(s string) (before, after string, found bool) {
	i := strings.LastIndexByte(s, '-')
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}
