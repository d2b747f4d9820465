package engine_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"testing"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/sandbox"
	"github.com/macfleet/macfleet/internal/sandbox/mac"
)

// shelf has one artifact to send.
type shelf []byte

// Open returns it.
func (s shelf) Open(context.Context, fleet.Artifact) (io.ReadCloser, int64, error) {
	return io.NopCloser(bytes.NewReader(s)), int64(len(s)), nil
}

// Unchanged says that it has the bytes that the configuration names.
func (s shelf) Unchanged(context.Context, fleet.Artifact) error { return nil }

// pushed is a kubelet that macfleet uploads: some packets of an SSH connection long.
func pushed(version string) (*fleet.Artifact, shelf) {
	content := sandbox.Sample("https://artifacts.acme.dev/tart-kubelet-" + version)
	for sum := sha256.Sum256(content); len(content) < 80_000; sum = sha256.Sum256(sum[:]) {
		content = fmt.Appendf(content, "%x\n", sum)
	}
	sum := sha256.Sum256(content)
	return &fleet.Artifact{Name: "kubelet", Version: version, Source: "dist/tart-kubelet-" + version, SHA256: hex.EncodeToString(sum[:]),
		Size: int64(len(content)), Fetch: fleet.FetchPush}, content
}

// TestPushInterrupted interrupts the roll of a kubelet that macfleet uploads: at each tool, at
// each command, and at bytes all along what is sent. There is one good file then, and
// nothing of the others.
func TestPushInterrupted(t *testing.T) {
	t.Parallel()
	artifact, content := pushed("0.5.0")
	roller := func(t *testing.T) *victim {
		v := victimIn(t, prepared(t, 3, nodes(1)))
		v.engine.Artifacts, v.spec.TartKubelet.Artifact = content, artifact
		return v
	}
	clean := roller(t)
	converges(t, clean.engine)
	want := clean.remains(t)
	file := fleet.ArtifactFolder + "/" + artifact.SHA256
	if text, err := clean.machine.ReadFile(file); err != nil || !bytes.Equal(text, content) {
		t.Errorf("%s holds %d bytes, %v", file, len(text), err)
	}
	for name, interruption := range map[string]struct {
		kind mac.Interruption
		step int
	}{"killed": {mac.Killed, 1}, "the line breaks": {mac.ConnectionBreaks, 1}, // a prime falls anywhere in lines and packets
		"the line breaks in the bytes": {mac.InputBreaks, 2503}} {
		parallel(t, name, func(t *testing.T) {
			everywhere(t, 0, 1, func(t *testing.T, n int) bool {
				return roller(t).interruptedAt(t, n*interruption.step, onHost(interruption.kind), want)
			})
		})
	}
}
