package secret

import (
	"fmt"
	"slices"
	"strings"
)

// Scheme is the kind of place a reference points to.
type Scheme string

// The schemes of references. Each is resolved as late as possible, and only for a
// host that needs it.
const (
	Env        Scheme = "env"  // env://NAME: a variable of this process
	File       Scheme = "file" // file://path: a file, relative to the configuration
	Kubernetes Scheme = "k8s"  // k8s://namespace/name/key: a Secret of the cluster
	OnePass    Scheme = "op"   // op://vault/item/field: through the op program
)

// schemes lists every scheme with the form of its path, in the order of the
// documentation.
var schemes = []struct {
	scheme Scheme
	form   string
	parts  int // path elements; 0 = any text
}{
	{Env, "env://NAME", 1},
	{File, "file://path", 0},
	{Kubernetes, "k8s://namespace/name/key", 3},
	{OnePass, "op://vault/item/field", 3},
}

// Ref says where a secret is found, for example
// "k8s://macfleet/fleet-ssh/id_ed25519". A Ref is not secret itself. The zero
// Ref refers to nothing.
type Ref struct {
	Scheme Scheme
	Path   string // what follows "scheme://"
}

// ParseRef reads a reference. The error lists the valid forms and does not repeat the
// text, because a text that is not a reference may be a secret.
func ParseRef(text string) (Ref, error) {
	scheme, path, found := strings.Cut(text, "://")
	if !found {
		return Ref{}, fmt.Errorf("it must look like %s", forms())
	}
	for _, s := range schemes {
		ref := Ref{s.scheme, path}
		parts := ref.Parts()
		switch {
		case string(s.scheme) != scheme:
		case path == "" || s.parts > 0 && (len(parts) != s.parts || slices.Contains(parts, "")):
			return Ref{}, fmt.Errorf("it must have the form %s", s.form)
		default:
			return ref, nil
		}
	}
	return Ref{}, fmt.Errorf("no scheme %q exists; use %s", scheme, forms())
}

// Parts returns the elements of the path, split at slashes.
func (r Ref) Parts() []string { return strings.Split(r.Path, "/") }

// IsZero reports whether r refers to nothing.
func (r Ref) IsZero() bool { return r == Ref{} }

// String returns the reference as it is written in a configuration.
func (r Ref) String() string {
	if r.IsZero() {
		return ""
	}
	return string(r.Scheme) + "://" + r.Path
}

func forms() string {
	var all []string
	for _, s := range schemes {
		all = append(all, s.form)
	}
	return strings.Join(all, ", ")
}
