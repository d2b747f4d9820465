package secret

import (
	"regexp"
	"strings"
)

// Shapes that only secrets have. Each starts with letters that its maker chose for
// this purpose, so ordinary text does not match.
var patterns = []*regexp.Regexp{
	// A private key, to its end or, where it was cut off, to the end of the text.
	regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----.*?(-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----|$)`),
	regexp.MustCompile(`gh[pousr]_[A-Za-z0-9]{36,}`),                                       // GitHub
	regexp.MustCompile(`github_pat_[A-Za-z0-9_]{22,}`),                                     // GitHub, fine-grained
	regexp.MustCompile(`tskey-[a-z]+-[A-Za-z0-9-]{8,}`),                                    // Tailscale
	regexp.MustCompile(`AGE-SECRET-KEY-1[0-9A-Z]{58}`),                                     // age
	regexp.MustCompile(`eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}`), // a signed web token, as service accounts have
}

// shapes finds texts that look like a secret.
func shapes(text string) []span {
	var out []span
	for _, p := range patterns {
		for _, at := range p.FindAllStringIndex(text, -1) {
			out = append(out, span{at[0], at[1]})
		}
	}
	return append(out, bootstrapTokens(text)...)
}

// The two halves of a Kubernetes bootstrap token, abcdef.0123456789abcdef.
const (
	tokenID     = 6
	tokenSecret = 16
)

// bootstrapTokens finds Kubernetes bootstrap tokens. Job labels and file names
// can have that form too (docker.socketactivation), and a false hit there would
// become a difference: so the second half must hold a digit and a letter, which
// all but one of 200 tokens do, and neither half may be a part of a longer
// word, name or path.
func bootstrapTokens(text string) []span {
	var out []span
	for dot := 0; ; dot++ {
		i := strings.IndexByte(text[dot:], '.')
		if i < 0 {
			return out
		}
		dot += i
		from, to := dot-tokenID, dot+1+tokenSecret
		if from < 0 || to > len(text) || !lower(text[from:dot]) || !lower(text[dot+1:to]) {
			continue
		}
		half := text[dot+1 : to]
		if !strings.ContainsAny(half, "0123456789") || strings.Trim(half, "0123456789") == "" {
			continue
		}
		if from > 0 && partOfName(text[from-1]) || to < len(text) && (partOfName(text[to]) && text[to] != '.') {
			continue
		}
		out = append(out, span{from, to})
	}
}

// lower reports whether a text consists of small letters and digits.
func lower(text string) bool {
	return strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}

// partOfName reports whether a letter continues a word, a name or a path.
func partOfName(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("._-/", c) >= 0
}
