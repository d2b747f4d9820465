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
	// named is "<owner>-<fleet>-<group>-<suffix>", which is parsed from the right.
	named = regexp.MustCompile(`^(.*)-([a-z0-9]+)-([a-z0-9]+)-([0-9a-f]{5})$`)
	// ownable is any text that can precede the "<fleet>-<group>-<suffix>" of a name.
	ownable = regexp.MustCompile(`^([a-z0-9]*|[a-z0-9]+-[a-z0-9]*|[a-z0-9]+-[a-z0-9]+-[0-9a-f]{0,5})$`)
)

// Owner identifies whose servers these are: the configuration's name and the environment, which is empty if a
// directory defines none.
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

// Place is the meaning of an owned name.
type Place struct{ Fleet, Group, Suffix string }

// Parse reads a server's name. It reports false for a name that o does not own: the name is parsed from the
// right, and the rest is compared as a whole, so that "acme" never owns "acme-prod-…".
func (o Owner) Parse(name string) (Place, bool) {
	m := named.FindStringSubmatch(name)
	if m == nil || m[1] != o.String() {
		return Place{}, false
	}
	return Place{Fleet: m[2], Group: m[3], Suffix: m[4]}, true
}

// Split parses any owner's name of a server, from the right. It reports false for a name outside the grammar
// or with another server's suffix.
func Split(name, serverID string) (owner string, at Place, ok bool) {
	m := named.FindStringSubmatch(name)
	if m == nil || serverID == "" || m[4] != suffix(serverID) {
		return "", Place{}, false
	}
	return m[1], Place{Fleet: m[2], Group: m[3], Suffix: m[4]}, true
}

func suffix(serverID string) string {
	return strings.ToLower(serverID[:min(len(serverID), SuffixLength)])
}

// PoolConflict returns why prefix cannot name a pool next to o's servers, or "". A pool name that parses as
// an owned one, or an owned one that starts with the prefix, would make a member look free.
func (o Owner) PoolConflict(prefix string) string {
	owned := o.String() + "-"
	switch {
	case strings.HasPrefix(owned, prefix):
		return fmt.Sprintf("every server of %s would count as a pool server", o)
	case strings.HasPrefix(prefix, owned) && ownable.MatchString(strings.TrimPrefix(prefix, owned)):
		return fmt.Sprintf("a host of %s can have such a name: %q", o, o.sample(prefix))
	}
	return ""
}

// sample completes prefix to a name that o owns.
func (o Owner) sample(prefix string) string {
	const whole = "x-x-0a1b2"
	for i := len(whole); i > 0; i-- {
		if _, owned := o.Parse(prefix + whole[i:]); owned {
			return prefix + whole[i:]
		}
	}
	return prefix + whole
}
