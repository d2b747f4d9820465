// Package secrets resolves references to secrets, as late as possible.
package secrets

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/internal/wholefile"
)

// Resolver finds secrets. A nil function means that references of that kind
// cannot be resolved, and the error says why.
type Resolver struct {
	Dir        string // file:// references are relative to it
	LookupEnv  func(name string) (string, bool)
	Kubernetes func(ctx context.Context, namespace, name, key string) (string, error)
	// World replaces this machine's variables, files and programs: under
	// the sandbox every reference but k8s:// is found there.
	World func(ref string) (string, error)
	// Learn is called with every value that was found, so that it can be redacted
	// elsewhere; nil: no call.
	Learn func(value string)
	// Stop ends the reading of a file that is a pipe without a writer; nil: only the context of Resolve does.
	Stop context.Context
}

// Resolve returns the secret behind a reference. Errors name the reference and
// never hold a part of the value.
func (r Resolver) Resolve(ctx context.Context, ref secret.Ref) (secret.Value, error) {
	text, err := r.read(ctx, ref)
	var v secret.Value
	if err == nil {
		v, err = secret.New(text)
	}
	if err != nil {
		return secret.Value{}, fmt.Errorf("secret %s: %w", ref, err)
	}
	if r.Learn != nil {
		r.Learn(text)
	}
	return v, nil
}

func (r Resolver) read(ctx context.Context, ref secret.Ref) (string, error) {
	if ref.Scheme == secret.Kubernetes {
		if r.Kubernetes == nil {
			return "", errors.New("the configuration has no kubernetes block to read it from")
		}
		p := ref.Parts()
		return r.Kubernetes(ctx, p[0], p[1], p[2])
	}
	if r.World != nil {
		return r.World(ref.String())
	}
	switch ref.Scheme {
	case secret.Env:
		text, ok := r.LookupEnv(ref.Path)
		if !ok {
			return "", errors.New("the variable is not set")
		}
		return text, nil
	case secret.File:
		path := ref.Path
		if !filepath.IsAbs(path) {
			path = filepath.Join(r.Dir, path)
		}
		if r.Stop != nil {
			ctx = r.Stop
		}
		text, err := wholefile.Read(ctx, path, largest)
		return string(text), err
	case secret.OnePass:
		return onePassword(ctx, ref)
	}
	return "", errors.New("this kind of reference is not supported")
}

// largest is how many bytes a secret of a file may have.
const largest = 1 << 20

// patience is how long op may take: it may ask a person for a finger.
const patience = 2 * time.Minute

// onePassword asks the user's own op program: its Go library does not build
// without cgo.
func onePassword(ctx context.Context, ref secret.Ref) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "op", "read", "--no-newline", ref.String())
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			return "", errors.New("the 1Password CLI (op) is not installed")
		}
		return "", fmt.Errorf("op read: %w: %s", err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}
