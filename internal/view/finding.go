package view

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
)

// category is what kind of thing a row of a plan reports.
type category string

// The categories, in the order in which a plan shows them: what needs a person comes first.
const (
	catCluster     category = "CLUSTER"
	catBlocked     category = "BLOCKED"
	catDown        category = "DOWN"
	catAttention   category = "ATTENTION" // drift that only a person can remove
	catLost        category = "LOST"
	catNotCompared category = "NOT COMPARED"
	catOrphaned    category = "ORPHANED"
	catHeld        category = "HELD"
	catDrift       category = "DRIFT"
	catAdopt       category = "ADOPT" // the first changes of hosts that are taken over as they are
	catConfig      category = "CONFIG"
	catNew         category = "NEW"
	catRemove      category = "REMOVE"
	catDeferred    category = "DEFERRED"
	catSkipped     category = "SKIPPED"
	catWarning     category = "WARNING"
	catHostKey     category = "HOST KEY"
	catUnmanaged   category = "UNMANAGED"
)

// categories are all categories in that order, each with the sign whose colour it has.
var categories = []struct {
	name category
	sign string
}{{catCluster, signRefused}, {catBlocked, signRefused}, {catDown, signRefused}, {catAttention, signDrift}, {catLost, signRefused}, {catNotCompared, signUnknown},
	{catOrphaned, signDrift}, {catHeld, signUnknown}, {catDrift, signDrift}, {catAdopt, signOK}, {catConfig, signUpdate}, {catNew, signOK}, {catRemove, signRefused}, {catDeferred, signUpdate},
	{catSkipped, signUnknown}, {catWarning, signUpdate}, {catHostKey, signUpdate}, {catUnmanaged, ""}}

// place is where rows of a category stand.
func (c category) place() int {
	for i, of := range categories {
		if of.name == c {
			return i
		}
	}
	return len(categories) - 1
}

// sign is the sign whose colour a category has.
func (c category) sign() string { return categories[c.place()].sign }

// finding is one thing that a plan reports about a host or another subject.
type finding struct {
	category
	host    *plan.Host // nil: subject says what it is about
	subject string
	what    string   // what precedes the text, such as a step
	text    string   // in a few words
	codes   []string // reason codes
	fix     string   // one command or action; empty: no person must act
	at      []fleet.Source
	counted bool // numbers in the text may differ among hosts for which the same holds
}

// group is findings that say the same of several hosts.
type group struct {
	finding
	hosts []*plan.Host
}

// What differs between hosts for which the same holds.
var (
	anyPlace   = regexp.MustCompile(` \(\d{1,3}(?:\.\d{1,3}){3}:\d+\)`) // says nothing of several hosts
	anyAddress = regexp.MustCompile(`\b\d{1,3}(?:\.\d{1,3}){3}\b`)
	anyKey     = regexp.MustCompile(`SHA256:[A-Za-z0-9+/]{43}`)
	anyNumber  = regexp.MustCompile(`(^|[ (])(\d+)([ ),;:]|$)`)
)

// What stands for what is each host's own where several hosts share a row.
const (
	ownAddress = "its address"
	ownServer  = "its server's name"
	ownKey     = "its key"
)

// general is a text of a host without what is the host's own.
func (f finding) general(text, own string) string {
	if h := f.host; h != nil {
		server := own
		if h.Server.Name != h.Name && own == ownName {
			server = ownServer
		}
		for _, word := range [][2]string{{h.Server.ProviderID(), ownID}, {h.Name, own}, {h.Server.Name, server}} {
			if word[0] != "" {
				text = strings.ReplaceAll(text, word[0], word[1])
			}
		}
	}
	text = anyAddress.ReplaceAllString(anyPlace.ReplaceAllString(text, ""), ownAddress)
	return anyKey.ReplaceAllString(text, ownKey)
}

// key is equal for findings that fold into one row.
func (f finding) key() string {
	text := f.general(f.text, ownName)
	if f.counted {
		text = anyNumber.ReplaceAllString(text, "${1}0${3}")
	}
	subject := ""
	if f.host == nil && f.category != catDown {
		subject = f.subject
	}
	return strings.Join([]string{string(f.category), subject, f.what, text, strings.Join(f.codes, ","), f.general(f.fix, anyName)}, "\x00")
}

// foldFindings joins findings that say the same, and then rows of one set of hosts that only
// follow the configuration, as one rollout brings them all.
func foldFindings(all []finding) []group {
	out := mapped(grouped(all, finding.key), func(same []finding) group {
		g := group{finding: same[0]}
		for _, f := range same {
			if f.host != nil {
				g.hosts = append(g.hosts, f.host)
			}
			g.at = append(g.at, f.at...)
		}
		if len(same) > 1 {
			g.text, g.fix = alike(same), same[0].general(same[0].fix, anyName)
		}
		return g
	})
	out = mapped(grouped(out, configKey), joinSteps)
	slices.SortStableFunc(out, func(a, b group) int { return cmp.Compare(a.place(), b.place()) })
	return out
}

// configKey is equal for rows of several steps of the same hosts that share a line.
func configKey(g group) string {
	key := string(g.category) + "\x00" + strings.Join(mapped(g.hosts, func(h *plan.Host) string { return h.Name }), ",")
	if g.category != catConfig || g.fix != "" {
		key += "\x00" + g.what + "\x00" + g.finding.key() + g.text
	}
	return key
}

// joinSteps makes one row of those of several steps.
func joinSteps(steps []group) group {
	g := steps[0]
	for _, next := range steps[1:] {
		g.text += ", then " + listed(": ", next.what, next.text)
		g.at = append(g.at, next.at...)
		g.codes = unique(slices.Concat(g.codes, next.codes))
	}
	return g
}

// alike is the text that several findings share: what is a host's own is left out, and of a number
// that differs the smallest and the largest are named.
func alike(same []finding) string {
	texts := mapped(same, func(f finding) string { return f.general(f.text, ownName) })
	if len(slices.Compact(slices.Clone(texts))) == 1 {
		if first := same[0].text; !slices.ContainsFunc(same, func(f finding) bool { return f.text != first }) {
			return first
		}
		return texts[0]
	}
	numbers := mapped(texts, func(text string) []int { return numbersIn(text) })
	i := -1
	return anyNumber.ReplaceAllStringFunc(texts[0], func(found string) string {
		i++
		low, high := numbers[0][i], numbers[0][i]
		for _, of := range numbers {
			low, high = min(low, of[i]), max(high, of[i])
		}
		if low == high {
			return found
		}
		parts := anyNumber.FindStringSubmatch(found)
		return fmt.Sprintf("%s%d–%d%s", parts[1], low, high, parts[3])
	})
}

func numbersIn(text string) []int {
	return mapped(anyNumber.FindAllStringSubmatch(text, -1), func(parts []string) int {
		n, err := strconv.Atoi(parts[2])
		if err != nil {
			return 0 // no number of a trouble is that long
		}
		return n
	})
}
