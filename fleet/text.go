package fleet

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/agext/levenshtein"
)

// kinds are the checks of texts by the values of the tag "is". Each says what is wrong with a text, or "".
var kinds = map[string]func(text string) string{
	"": func(string) string { return "" },
	"anchor": all(
		is(`^[A-Za-z0-9._-]{1,63}$`, "it must be 1 to 63 letters, digits, dots, hyphens and underscores"),
		is(`^[A-Za-z0-9]`, "it must start with a letter or digit"),
		not(`^(?i)com\.apple`, "names that start with com.apple are reserved for macOS")),
	"code": is(`^[a-z0-9][a-z0-9-]{0,62}$`, "a code is a word such as sleep-enabled, as shown by macfleet drift"),
	"dns":  is(dnsLabel, "it must be at most 63 lower-case letters, digits and hyphens, and start and end with a letter or digit"),
	// The name of an ignore is used in metrics and tables.
	"ignore": is(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`, "it must be 1 to 63 letters, digits, hyphens, underscores and dots, and start with a letter or digit"),
	// The label of a launchd job to replace.
	"job": all(
		is(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`, "the label of a launchd job must be 1 to 128 letters, digits, dots, hyphens and underscores, and start with a letter or digit"),
		not(`^(?i)com\.apple\.`, "jobs that start with com.apple are reserved for macOS"),
		not(`^(?i)dev\.macfleet\.`, "this is one of macfleet's own jobs")),
	"job_pattern": is(`^[A-Za-z0-9*][A-Za-z0-9._*-]{0,127}$`, "it must be the label of a launchd job: 1 to 128 letters, digits, dots, hyphens, underscores and *, and start with a letter or digit"),
	"network":     CheckNetwork,
	// Who wrote a field, as the API server records it.
	"field_manager": is(`^[A-Za-z0-9][A-Za-z0-9._/-]{0,127}$`, "it must be 1 to 128 letters, digits, dots, hyphens, underscores and slashes, as kubectl get node NAME --show-managed-fields prints it"),
	"note":          checkNote,
	// The name of the configuration, or of an environment.
	"owner": is(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`, "it must be lower-case letters, digits and hyphens, and start and end with a letter or digit"),
	// The name of a fleet or a group.
	"part": is(`^[a-z0-9]+$`, "it must be lower-case letters and digits without a hyphen, because hyphens separate the parts of server names"),
	"quantity": func(text string) string {
		if _, ok := Bytes(text); !ok {
			return `it must be a whole number of bytes in Kubernetes notation, such as "2Gi" or "512Mi"`
		}
		return ""
	},
	// Digests have one form, because they are names of files on the hosts.
	"sha256": is(`^[0-9a-f]{64}$`, "a SHA-256 digest has 64 digits, 0 to 9 and a to f; remove the line and run macfleet artifacts lock"),
	"user":   is(`^[A-Za-z_][A-Za-z0-9._-]{0,31}$`, "it must be at most 32 letters, digits, dots, hyphens and underscores"),
	"uuid":   is(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`, "it must be a UUID in lower case"),
	// The version of an artifact is one word in the receipts on the hosts.
	"version": is(`^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$`, "it must be 1 to 64 letters, digits, dots, hyphens, underscores and plus signs, and start with a letter or digit"),
	"zone":    is(`^[a-z]{2}-[a-z]{3,7}-[0-9]{1,2}$`, `it must look like "fr-par-1"`),
}

const dnsLabel = `^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`

// is checks that a text matches a pattern, or with not that it does not. why is the message otherwise.
func is(pattern, why string) func(string) string { return check(pattern, true, why) }

func not(pattern, why string) func(string) string { return check(pattern, false, why) }

func check(pattern string, want bool, why string) func(string) string {
	p := regexp.MustCompile(pattern)
	return func(text string) string {
		if p.MatchString(text) == want {
			return ""
		}
		return why
	}
}

// all returns what the first of several checks finds.
func all(checks ...func(string) string) func(string) string {
	return func(text string) string {
		for _, c := range checks {
			if why := c(text); why != "" {
				return why
			}
		}
		return ""
	}
}

// CheckText says what is wrong with a value whose field has the tag "is", or "". An unknown kind is a bug in
// this package.
func CheckText(kind, text string) string { return kinds[kind](text) }

// CheckLabel says what is wrong with a label of a Node, or "". Labels of Kubernetes' own domains are refused:
// the kubelet and its API server set them.
func CheckLabel(key, value string) string {
	prefix, name, found := strings.Cut(key, "/")
	if !found {
		prefix, name = "", key
	}
	switch {
	case !labelText(name) || found && !IsDomain(prefix):
		return `a label's name must be at most 63 letters, digits, dots, hyphens and underscores between letters or digits, optionally after a domain and a slash, such as "acme.dev/size"`
	case value != "" && !labelText(value):
		return "a label's value must be empty, or at most 63 letters, digits, dots, hyphens and underscores between letters or digits"
	case Under(key, "kubernetes.io"), Under(key, "k8s.io"):
		return "labels under kubernetes.io and k8s.io are reserved for Kubernetes"
	case key == "tuist.dev/runtime":
		return "the label tuist.dev/runtime is always set by the agent"
	}
	return ""
}

// Under reports whether a label's key has that domain, or one below it, before its slash.
func Under(key, domain string) bool {
	prefix, _, found := strings.Cut(key, "/")
	return found && (prefix == domain || strings.HasSuffix(prefix, "."+domain))
}

var labelText = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`).MatchString

// IsDNSLabel reports whether a text is one part of a domain's name.
func IsDNSLabel(text string) bool { return CheckText("dns", text) == "" }

// IsDomain reports whether a text is a domain, in lower case.
func IsDomain(text string) bool {
	notPart := func(part string) bool { return !IsDNSLabel(part) }
	return len(text) <= 253 && !slices.ContainsFunc(strings.Split(text, "."), notPart)
}

// Bytes returns how many bytes a quantity is, in Kubernetes notation: a whole number, followed by nothing, k,
// M, G, T, Ki, Mi, Gi or Ti. It reports false for anything else, and on overflow.
func Bytes(quantity string) (int64, bool) {
	digits := strings.TrimRight(quantity, "kKMGTi")
	units := map[string]int64{"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}
	unit, known := units[quantity[len(digits):]]
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || !known || int64(n) > math.MaxInt64/unit {
		return 0, false
	}
	return int64(n) * unit, true
}

// longestCompared is the longest name, in bytes, that is compared with others.
const longestCompared = MaxName + 1

// Nearest returns the candidate that name is probably a misspelling of, or "": at most two letters differ,
// one in a short name, and of two none is the first. More would turn one machine's name into another's. Of several equally near ones it
// returns the first.
func Nearest(name string, candidates []string) string {
	if len(name) > longestCompared {
		return ""
	}
	plain := flat(name)
	if len(plain) < 2 {
		return ""
	}
	best, least := "", min(3, 1+(len(plain)+1)/3)
	for _, c := range candidates {
		if len(c) > longestCompared {
			continue
		}
		other := flat(c)
		if d := distance(plain, other); d < least && (d < 2 || strings.HasPrefix(other, plain[:1])) {
			best, least = c, d
		}
	}
	return best
}

// Among returns an error for the name of a thing that is not among those known. The error names those.
func Among(kind, name string, known []string) error {
	hint := ""
	switch near := Nearest(name, known); {
	case slices.Contains(known, name):
		return nil
	case len(known) == 0:
		return fmt.Errorf("there is no %s %q: the configuration has none", kind, name)
	case near != "":
		hint = fmt.Sprintf(" did you mean %q?", near)
	}
	return fmt.Errorf("there is no %s %q;%s the %ss are %s", kind, name, hint, kind, strings.Join(known, ", "))
}

// distance counts the letters that differ. Swapped letters count once.
func distance(a, b string) int {
	if a != b && anagram(a, b) {
		return 1
	}
	return levenshtein.Distance(a, b, nil)
}

func anagram(a, b string) bool {
	x, y := []rune(a), []rune(b)
	slices.Sort(x)
	slices.Sort(y)
	return slices.Equal(x, y)
}

// flat removes differences that people overlook.
func flat(name string) string {
	return strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(name))
}
