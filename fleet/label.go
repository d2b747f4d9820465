package fleet

import (
	"fmt"
	"slices"
	"strings"
)

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
