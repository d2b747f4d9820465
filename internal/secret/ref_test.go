package secret_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/macfleet/macfleet/internal/secret"
)

func TestParseRef(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		text  string
		want  secret.Ref
		parts []string
	}{
		{"env://ACME_TOKEN", secret.Ref{Scheme: secret.Env, Path: "ACME_TOKEN"}, []string{"ACME_TOKEN"}},
		{"file://keys/id_ed25519", secret.Ref{Scheme: secret.File, Path: "keys/id_ed25519"}, []string{"keys", "id_ed25519"}},
		{"file:///etc/key", secret.Ref{Scheme: secret.File, Path: "/etc/key"}, []string{"", "etc", "key"}},
		{"file://a://b", secret.Ref{Scheme: secret.File, Path: "a://b"}, []string{"a:", "", "b"}},
		{"k8s://macfleet/fleet-ssh/id_ed25519", secret.Ref{Scheme: secret.Kubernetes, Path: "macfleet/fleet-ssh/id_ed25519"}, []string{"macfleet", "fleet-ssh", "id_ed25519"}},
		{"op://acme/BUILDERS/app-id", secret.Ref{Scheme: secret.OnePass, Path: "acme/BUILDERS/app-id"}, []string{"acme", "BUILDERS", "app-id"}},
	} {
		got, err := secret.ParseRef(tc.text)
		if err != nil || got != tc.want || !slices.Equal(got.Parts(), tc.parts) || got.String() != tc.text || got.IsZero() {
			t.Errorf("ParseRef(%q) = %+v with the parts %q, zero %t, written %q, %v", tc.text, got, got.Parts(), got.IsZero(), got.String(), err)
		}
	}
	if r := (secret.Ref{}); !r.IsZero() || r.String() != "" {
		t.Errorf("the zero Ref is %q, zero %t", r.String(), r.IsZero())
	}
}

func TestParseRefRefuses(t *testing.T) {
	t.Parallel()
	const all = "env://NAME, file://path, k8s://namespace/name/key, op://vault/item/field"
	for want, texts := range map[string][]string{
		all:                                    {"", "ACME_TOKEN", "env:ACME_TOKEN", "env:/ACME_TOKEN", "://x"},
		`no scheme "vault" exists; use ` + all: {"vault://a/b"}, `no scheme "ENV"`: {"ENV://X"}, `no scheme " env"`: {" env://X"}, `no scheme "env\x00"`: {"env\x00://X"},
		"the form env://NAME":               {"env://", "env://A/B", "env:///A"},
		"the form file://path":              {"file://"},
		"the form k8s://namespace/name/key": {"k8s://a", "k8s://a/b", "k8s://a/b/", "k8s:///b/c", "k8s://a//c", "k8s://a/b/c/d"},
		"the form op://vault/item/field":    {"op://vault/item", "op://vault/item/section/field"},
	} {
		for _, text := range texts {
			got, err := secret.ParseRef(text)
			if err == nil || !strings.Contains(err.Error(), want) || !got.IsZero() {
				t.Errorf("ParseRef(%q) = %+v, %v; want an error with %q", text, got, err, want)
			}
			// A text that is not a reference may be a secret.
			if err != nil && strings.Contains(err.Error(), fmt.Sprintf("%q", text)) {
				t.Errorf("ParseRef(%q): %q repeats the text", text, err)
			}
		}
	}
}

// TestRefRoundTrip: a reference that parses is written as it was read, and any text either is refused or comes back unchanged.
func TestRefRoundTrip(t *testing.T) {
	t.Parallel()
	scheme := rapid.SampledFrom([]string{"env", "file", "k8s", "op", "ENV", "", "x"})
	rapid.Check(t, func(t *rapid.T) {
		elements := rapid.SliceOfN(rapid.StringMatching(`[a-zA-Z0-9 ._:%\n-]{0,6}`), 0, 4).Draw(t, "elements")
		text := scheme.Draw(t, "scheme") + rapid.SampledFrom([]string{"://", ":", ""}).Draw(t, "mark") + strings.Join(elements, "/")
		if rapid.Bool().Draw(t, "anything") {
			text = rapid.String().Draw(t, "text")
		}
		ref, err := secret.ParseRef(text)
		if err != nil {
			return
		}
		if ref.String() != text {
			t.Fatalf("%q comes back as %q", text, ref.String())
		}
		again, err := secret.ParseRef(ref.String())
		if err != nil || again != ref {
			t.Fatalf("%q: %+v, then %+v, %v", text, ref, again, err)
		}
		for _, p := range ref.Parts() {
			if p == "" && ref.Scheme != secret.File {
				t.Fatalf("%q has an empty element", text)
			}
		}
	})
}
