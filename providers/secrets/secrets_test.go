package secrets_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/providers/secrets"
)

const sentinel = "planted-7f3a9c"

func ref(t *testing.T, text string) secret.Ref {
	t.Helper()
	r, err := secret.ParseRef(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestResolve(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"key": sentinel, "empty": "", "sealed": "<sealed>"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := secrets.Resolver{Dir: dir,
		LookupEnv: func(name string) (string, bool) { return sentinel, name == "KEY" },
		Kubernetes: func(_ context.Context, namespace, name, key string) (string, error) {
			if namespace+name+key != "abc" {
				return "", errors.New("not found")
			}
			return sentinel, nil
		}}
	for text, problem := range map[string]string{
		"env://KEY": "", "env://OTHER": "not set", "file://key": "", "file://" + filepath.Join(dir, "key"): "",
		"file://missing": "no such file", "file://empty": "empty", "file://sealed": "placeholder",
		"k8s://a/b/c": "", "k8s://a/b/d": "not found",
	} {
		v, err := r.Resolve(t.Context(), ref(t, text))
		switch {
		case problem == "" && (err != nil || v.Reveal() != sentinel):
			t.Errorf("%s: %v", text, err)
		case problem != "" && (err == nil || !strings.Contains(err.Error(), problem) || !strings.Contains(err.Error(), text)):
			t.Errorf("%s: error %v does not name the reference and %q", text, err, problem)
		}
		if strings.Contains(fmt.Sprintf("%v %+v %s", err, v, v), sentinel) {
			t.Errorf("%s: the secret shows", text)
		}
	}
	_, err := secrets.Resolver{}.Resolve(t.Context(), ref(t, "k8s://a/b/c"))
	if err == nil || !strings.Contains(err.Error(), "no kubernetes block") {
		t.Errorf("without a cluster: %v", err)
	}
}

// TestWorld resolves everything but the cluster's own inside the simulated
// world, whatever this machine has.
func TestWorld(t *testing.T) {
	t.Parallel()
	r := secrets.Resolver{LookupEnv: func(string) (string, bool) { return "from this machine", true },
		World: func(text string) (string, error) { return "of the world: " + text, nil }}
	for _, text := range []string{"env://HOME", "file:///etc/passwd", "op://acme/KEY/field"} {
		v, err := r.Resolve(t.Context(), ref(t, text))
		if err != nil || v.Reveal() != "of the world: "+text {
			t.Errorf("%s: %q, %v", text, v.Reveal(), err)
		}
	}
}

// TestOnePassword runs a stand-in for the op program.
func TestOnePassword(t *testing.T) {
	dir := t.TempDir()
	script := "#!/bin/sh\nif [ \"$*\" = 'read --no-newline op://acme/KEY/field' ]; then printf %s " + sentinel + "; else echo 'no such item' >&2; exit 1; fi\n"
	if err := os.WriteFile(filepath.Join(dir, "op"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	v, err := secrets.Resolver{}.Resolve(t.Context(), ref(t, "op://acme/KEY/field"))
	if err != nil || v.Reveal() != sentinel {
		t.Errorf("%v", err)
	}
	if _, err := (secrets.Resolver{}).Resolve(t.Context(), ref(t, "op://acme/OTHER/field")); err == nil || !strings.Contains(err.Error(), "no such item") {
		t.Errorf("error %v", err)
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := (secrets.Resolver{}).Resolve(t.Context(), ref(t, "op://acme/KEY/field")); err == nil || !strings.Contains(err.Error(), "not installed") {
		t.Errorf("error %v", err)
	}
}

// TestLearn: only resolved secrets are reported to Learn. A placeholder is not one,
// and masking it in texts would hide it.
func TestLearn(t *testing.T) {
	t.Parallel()
	var reported []string
	r := secrets.Resolver{Learn: func(v string) { reported = append(reported, v) }, LookupEnv: func(name string) (string, bool) {
		text, ok := map[string]string{"KEY": sentinel, "SEALED": "<sealed>"}[name]
		return text, ok
	}}
	for _, name := range []string{"KEY", "SEALED", "OTHER"} {
		_, _ = r.Resolve(t.Context(), ref(t, "env://"+name)) // TestResolve checks the errors
	}
	if len(reported) != 1 || reported[0] != sentinel {
		t.Errorf("reported %q", reported)
	}
}
