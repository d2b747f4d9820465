package app

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/load"
	"github.com/macfleet/macfleet/internal/artifact"
	"github.com/macfleet/macfleet/internal/sandbox"
	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/providers/transport"
)

// ArtifactsStatus lists the artifacts.
func ArtifactsStatus(ctx context.Context, env *Env, asJSON bool) error {
	config, err := env.config(reading{unlocked: true})
	if err != nil {
		return err
	}
	store := env.artifactStore(nil)
	rows := view.ArtifactRows(config, func(of fleet.Artifact) (here, changed bool) { return store.State(ctx, of) })
	return env.answer(asJSON, func(w io.Writer) error { return view.WriteArtifacts(w, config, rows) }, func(t *view.Text) { t.Artifacts(rows) })
}

// LockArtifactsOptions are the flags of artifacts lock.
type LockArtifactsOptions struct{ Check, Update bool }

// LockArtifacts writes the digests of artifacts into the configuration.
func LockArtifacts(ctx context.Context, env *Env, o LockArtifactsOptions) (err error) {
	config, err := env.config(reading{unlocked: true})
	if err != nil {
		return err
	}
	chosen, err := artifactsNamed(config.Artifacts, env.Args)
	if err != nil {
		return err
	}
	world, err := env.openWorld(config)
	if err != nil {
		return err
	}
	if world != nil {
		defer func() { err = errors.Join(err, world.Close()) }()
	}
	store := env.artifactStore(world)
	var all []view.Lock
	pins := make(map[string]load.Pin)
	failed, differs := false, false
	for _, of := range chosen {
		pin, err := store.Hash(ctx, of)
		l := view.Lock{Artifact: of, SHA256: pin.SHA256, Size: pin.Size, Err: err}
		l.Refused = err == nil && of.SHA256 != "" && of.SHA256 != pin.SHA256 && !o.Update
		differs = differs || l.Differs()
		failed = failed || err != nil || l.Refused && !o.Check
		if l.Differs() && !l.Refused {
			pins[of.Name] = load.Pin(pin)
		}
		if err == nil && !l.Refused && !o.Check {
			store.NoteVersion(pin.SHA256, of.Version)
		}
		all = append(all, l)
	}
	var files []string
	if !o.Check {
		files, err = env.writePins(pins)
	}
	env.outText().Locks(all, files)
	switch {
	case err != nil:
		return err
	case failed:
		return exit(ExitError)
	}
	return result(o.Check && differs, true)
}

// BuildArtifact builds programs that have no release for the hosts, and prints the block of the artifact.
func BuildArtifact(ctx context.Context, env *Env, folder string) error {
	name, version, _ := strings.Cut(env.Args[0], "@")
	b, err := artifact.Build(ctx, name, version, filepath.Join(env.Dir, folder), env.errText().Say)
	if err != nil {
		return err
	}
	source := path.Join(filepath.ToSlash(folder), filepath.Base(b.Path))
	env.outText().Say(fmt.Sprintf("artifact %q {\n  version = %q\n  source  = %q\n  fetch   = \"push\"\n  sha256  = %q\n  size    = %d\n}", name, version, source, b.SHA256, b.Size))
	return nil
}

// artifactsNamed returns the artifacts of those names, or all.
func artifactsNamed(all []fleet.Artifact, names []string) ([]fleet.Artifact, error) {
	if len(names) == 0 {
		return all, nil
	}
	known := mapped(all, func(of fleet.Artifact) string { return of.Name })
	if wrong := without(known, slices.Clone(names)); len(wrong) > 0 {
		return nil, fmt.Errorf("there is no artifact %s; %s", wrong[0], cmp.Or(didYouMean("did you mean %s?", wrong[0], known), "macfleet artifacts status lists them"))
	}
	return slices.DeleteFunc(slices.Clone(all), func(of fleet.Artifact) bool { return !slices.Contains(names, of.Name) }), nil
}

// writePins writes digests into the configuration's files, and returns those that changed.
func (env *Env) writePins(pins map[string]load.Pin) ([]string, error) {
	if len(pins) == 0 {
		return nil, nil
	}
	names, err := env.configFiles()
	if err != nil {
		return nil, err
	}
	var changed []string
	for _, name := range names {
		before, err := env.readText(name)
		if err != nil {
			return changed, err
		}
		after, err := load.Lock(name, before, pins)
		if err == nil && bytes.Equal(before, after) {
			continue
		}
		if err == nil {
			err = rewrite(name, after)
		}
		if err != nil {
			return changed, err
		}
		changed = append(changed, name)
	}
	return changed, nil
}

// artifactStore returns where artifacts are found. In a sandbox the world answers for URLs and has the cache.
func (env *Env) artifactStore(world *sandbox.World) *artifact.Store {
	store := artifact.New(env.Dir, transport.Downloads(&transport.Counter{}))
	// A folder with a cache in it would not be made into a world, so the cache waits for the world.
	if env.Sandbox != "" && sandbox.Exists(env.sandboxDir()) {
		store.Cache = filepath.Join(env.sandboxDir(), sandbox.ArtifactsFolder)
	}
	if world != nil {
		store.HTTP = &http.Client{Transport: worldTransport{world}}
	}
	return store
}

// worldTransport answers requests with what the Macs of a sandbox download.
type worldTransport struct{ world *sandbox.World }

// RoundTrip returns the whole file.
func (t worldTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	file, err := t.world.Download(r.URL.String())
	resp := &http.Response{Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: make(http.Header), Body: file, ContentLength: -1, Request: r}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		resp.Status, resp.StatusCode, resp.Body = "404 Not Found", http.StatusNotFound, http.NoBody
	case err != nil:
		return nil, fmt.Errorf("the sandbox: %w", err)
	}
	return resp, nil
}
