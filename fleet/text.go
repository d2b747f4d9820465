package fleet

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/agext/levenshtein"
)

// kinds are the checks of texts by the values of the tag "is". Each says what is wrong
// with a text, or "".
var kinds = map[string]func(text string) string{
	"anchor": CheckAnchor, "network": CheckNetwork, "quantity": CheckQuantity, "job": CheckJob, "version": CheckVersion, "sha256": CheckSHA256,
	"code": checkCode, "note": checkNote,
}

// CheckText says what is wrong with a value whose field has the tag "is", or
// "". A kind that nobody knows is a fault of this package.
func CheckText(kind, text string) string {
	if kind == "" {
		return ""
	}
	return kinds[kind](text)
}

// CheckPair says the same of a key of a map with its value.
func CheckPair(kind, key, value string) string {
	switch kind {
	case "":
		return ""
	case "label":
		return CheckLabel(key, value)
	}
	panic(fmt.Sprintf("no pair is of the kind %q", kind))
}

// only reports whether text has 1 to longest characters, each of them an ASCII
// letter, a digit or one of more.
func only(text string, longest int, more string) bool {
	strange := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(more, r))
	}
	return text != "" && len(text) <= longest && !strings.ContainsFunc(text, strange)
}

// alnum reports whether a character is an ASCII letter or a digit.
func alnum(c byte) bool { return only(string(rune(c)), 1, "") }

const maxVersion = 64

// CheckVersion says what is wrong with the version of an artifact, or "". It
// stands as one word in the receipts on the hosts.
func CheckVersion(text string) string {
	if !only(text, maxVersion, "._+-") || !alnum(text[0]) {
		return fmt.Sprintf("it must be 1 to %d letters, digits, dots, hyphens, underscores and plus signs, and begin with a letter or digit", maxVersion)
	}
	return ""
}

// CheckSHA256 says what is wrong with a digest, or "". There is one way to write
// each, because digests are names of files on the hosts.
func CheckSHA256(text string) string {
	if len(text) != 64 || strings.Trim(text, "0123456789abcdef") != "" {
		return "a SHA-256 digest has 64 digits, 0 to 9 and a to f; take the line out, and macfleet artifacts lock writes it"
	}
	return ""
}

const maxJob = 128

// CheckJob says what is wrong with the label of a launchd job that is to be taken
// over, or "".
func CheckJob(text string) string {
	switch lower := strings.ToLower(text); {
	case !only(text, maxJob, "._-") || !alnum(text[0]):
		return fmt.Sprintf("the label of a launchd job must be 1 to %d letters, digits, dots, hyphens and underscores, and begin with a letter or digit", maxJob)
	case strings.HasPrefix(lower, "com.apple."):
		return "jobs that begin with com.apple are macOS's own"
	case strings.HasPrefix(lower, "dev.macfleet."):
		return "this is a job of macfleet's own"
	}
	return ""
}

const (
	maxLabel  = 63  // a label's value, and its name without the prefix
	maxPrefix = 253 // the domain before the slash
)

// CheckLabel says what is wrong with a label of a Node, or "". Labels that begin
// with Kubernetes' own domains are refused: the kubelet and its API server decide
// about them.
func CheckLabel(key, value string) string {
	prefix, name, found := strings.Cut(key, "/")
	if !found {
		prefix, name = "", key
	}
	switch {
	case !labelText(name) || found && !IsDomain(prefix):
		return fmt.Sprintf(`a label's name must be at most %d letters, digits, dots, hyphens and underscores between letters or digits, and may have a domain and a slash before it, such as "acme.dev/size"`, maxLabel)
	case value != "" && !labelText(value):
		return fmt.Sprintf("a label's value must be empty, or at most %d letters, digits, dots, hyphens and underscores between letters or digits", maxLabel)
	case Under(key, "kubernetes.io"), Under(key, "k8s.io"):
		return "labels under kubernetes.io and k8s.io are Kubernetes' own"
	case key == "tuist.dev/runtime":
		return "the label tuist.dev/runtime is the agent's own, whatever it is told"
	}
	return ""
}

// Under reports whether a label's key has that domain, or one below it, before
// its slash.
func Under(key, domain string) bool {
	prefix, _, found := strings.Cut(key, "/")
	return found && (prefix == domain || strings.HasSuffix(prefix, "."+domain))
}

func labelText(text string) bool {
	return only(text, maxLabel, "._-") && alnum(text[0]) && alnum(text[len(text)-1])
}

// IsDNSLabel reports whether a text is one part of a domain's name.
func IsDNSLabel(text string) bool {
	return labelText(text) && only(text, maxLabel, "-") && strings.ToLower(text) == text
}

// IsDomain reports whether a text is a domain, in small letters.
func IsDomain(text string) bool {
	notPart := func(part string) bool { return !IsDNSLabel(part) }
	return len(text) <= maxPrefix && !slices.ContainsFunc(strings.Split(text, "."), notPart)
}

// Bytes returns how many bytes a quantity is, written as Kubernetes does it: a
// whole number, and behind it nothing, k, M, G, T, Ki, Mi, Gi or Ti. It reports
// false for anything else, and for what no number holds.
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

// CheckQuantity says what is wrong with a quantity, or "".
func CheckQuantity(text string) string {
	if _, ok := Bytes(text); !ok {
		return `it must be a whole number of bytes as Kubernetes writes it, such as "2Gi" or "512Mi"`
	}
	return ""
}

// longestCompared is the longest name, in bytes, that is compared with others.
const longestCompared = MaxName + 1

// Nearest returns the candidate that name is probably a misspelling of, or "": at
// most two letters differ, less in a short name. More would turn one machine's
// name into another's. Of equally near ones it returns the first.
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
		if d := distance(plain, flat(c)); d < least {
			best, least = c, d
		}
	}
	return best
}

// distance counts the letters that differ. Letters in another order are one
// slip.
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

// flat removes the differences that a person overlooks.
func flat(name string) string {
	return strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(name))
}
