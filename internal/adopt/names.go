package adopt

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
)

var (
	// index matches the end of a name by which servers of one set differ: a number, a letter, the random
	// suffix of a Kubernetes object, or a part of a UUID.
	index = regexp.MustCompile(`^([0-9]+|[a-z]|[bcdfghjklmnpqrstvwxz2456789]{5}|[bcdfghjklmnpqrstvwxz2456789]{8,10}|[0-9a-f]*[0-9][0-9a-f]*)$`)
	// noise matches words that say nothing of what a server is for.
	noise = regexp.MustCompile(`^(m[1-9][a-z]*|macs?|macminis?|minis?|macos|hosts?|servers?|nodes?|fleets?|machines?)$`)
	// numbered matches a word with a number at its end.
	numbered = regexp.MustCompile(`^([a-z][a-z]+?)[0-9]+$`)
)

// longestPart limits the name of a fleet: it becomes part of server names.
const longestPart = 20

// nameless is the fleet of servers whose names say nothing.
const nameless = "macs"

// words returns the words of a server's name that it shares with its like.
func words(name string) []string {
	all := strings.Split(name, "-")
	for len(all) > 1 && index.MatchString(all[len(all)-1]) {
		all = all[:len(all)-1]
	}
	if m := numbered.FindStringSubmatch(all[len(all)-1]); m != nil && !noise.MatchString(all[len(all)-1]) {
		all[len(all)-1] = m[1]
	}
	return slices.DeleteFunc(all, func(w string) bool { return w == "" || noise.MatchString(w) })
}

// stemsOf returns the name of the fleet of each server, by the server's name: what its name shares with its
// like, without what the names of all have in common.
func stemsOf(servers []inventory.Server, owner fleet.Owner) map[string]string {
	byName := make(map[string][]string, len(servers))
	distinct := make(map[string][]string)
	sizes := make(map[string]int)
	for _, s := range servers {
		w := trim(words(s.Name), owner)
		byName[s.Name] = w
		distinct[strings.Join(w, "-")] = w
		sizes[strings.Join(w, "-")]++
	}
	skip := shared(distinct)
	last := make(map[string]int) // how many stems end in a word
	for _, w := range distinct {
		if len(w) > skip {
			last[w[len(w)-1]]++
		}
	}
	out := make(map[string]string, len(servers))
	for name, w := range byName {
		many := sizes[strings.Join(w, "-")] > 1
		w = w[min(skip, len(w)):]
		switch {
		case len(w) == 0:
			out[name] = nameless
		case last[w[len(w)-1]] == 1:
			out[name] = part(plural(w[len(w)-1], many))
		default:
			out[name] = part(plural(strings.Join(w, ""), many))
		}
	}
	return out
}

// trim drops the words of the owner's own name from the beginning.
func trim(w []string, owner fleet.Owner) []string {
	for _, own := range slices.Concat(strings.Split(owner.Name, "-"), strings.Split(owner.Environment, "-")) {
		if len(w) > 1 && w[0] == own {
			w = w[1:]
		}
	}
	return w
}

// shared returns how many first words all stems have in common. Each stem keeps a word.
func shared(stems map[string][]string) int {
	if len(stems) < 2 {
		return 0
	}
	for n := 0; ; n++ {
		word := ""
		for _, w := range stems {
			if len(w) == 0 {
				continue // nameless
			}
			if len(w) < n+2 || word != "" && word != w[n] {
				return n
			}
			word = w[n]
		}
	}
}

// plural turns a word for one worker into that for several: runner becomes runners.
func plural(word string, many bool) string {
	if many && (strings.HasSuffix(word, "er") || strings.HasSuffix(word, "or")) {
		return word + "s"
	}
	return word
}

// part makes a text the name of a fleet or group: lower-case letters and digits.
func part(text string) string {
	kept := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(text))
	return cmp.Or(kept[:min(len(kept), longestPart)], nameless)
}

// groupName returns the name of the group of a server type: m2 for M2-L, or m2l next to another M2.
func groupName(serverType string, all []string) string {
	chip, _, _ := strings.Cut(serverType, "-")
	for _, other := range all {
		if c, _, _ := strings.Cut(other, "-"); other != serverType && c == chip {
			return part(serverType)
		}
	}
	return part(chip)
}

// Names are the names that a new configuration may have. The first that fits its servers is chosen.
func Names(servers []inventory.Server, directory string) []string {
	var first []string
	for _, s := range servers {
		word, _, more := strings.Cut(s.Name, "-")
		if more && !index.MatchString(word) && !noise.MatchString(word) {
			first = append(first, word)
		}
	}
	slices.Sort(first)
	var out []string
	if distinct := slices.Compact(slices.Clone(first)); len(distinct) == 1 && len(first) == len(servers) {
		out = append(out, distinct[0], distinct[0]+"-macs")
	}
	out = append(out, strings.Trim(label.ReplaceAllString(strings.ToLower(directory), "-"), "-"), nameless)
	return slices.DeleteFunc(out, func(n string) bool { return fleet.CheckText("owner", n) != "" || len(n) > longestPart })
}

var label = regexp.MustCompile(`[^a-z0-9]+`)

// Fits reports whether no server has a name that an owner would give, and the owner's pool can have the
// prefix.
func Fits(owner fleet.Owner, prefix string, servers []inventory.Server) bool {
	owns := func(s inventory.Server) bool {
		at, owned := owner.Parse(s.Name)
		return owned && at != (fleet.Place{})
	}
	return owner.PoolConflict(prefix) == "" && !slices.ContainsFunc(servers, owns)
}

// Pools returns the prefixes of pool names among the servers: everything up to the word pool.
func Pools(servers []inventory.Server) []string {
	var out []string
	for _, s := range servers {
		all := strings.Split(s.Name, "-")
		if i := slices.Index(all, "pool"); i >= 0 && i+1 < len(all) {
			out = append(out, strings.Join(all[:i+1], "-")+"-")
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
