package fleet

import (
	"fmt"
	"strings"
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
