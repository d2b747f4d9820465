package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/load"
	"github.com/macfleet/macfleet/internal/artifact"
	"github.com/macfleet/macfleet/internal/sandbox"
	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/providers/transport"
)

func (a *app) artifactsCmd() *cobra.Command {
	c := &cobra.Command{Use: "artifacts", Short: "Lock the files that hosts get, and say where they are", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	c.AddCommand(a.lockCmd(), a.statusCmd())
	return c
}

// lockOptions are the flags of artifacts lock.
type lockOptions struct{ check, update bool }

func (a *app) lockCmd() *cobra.Command {
	var o lockOptions
	c := &cobra.Command{Use: "lock [NAME...]", Short: "Write the digests of artifacts into the configuration", Args: cobra.ArbitraryArgs,
		Long: "lock reads the source of each artifact, downloading URLs, and writes sha256 and size into its block.\n" +
			"A digest that stands there already is changed with --update alone: a server that has other bytes\n" +
			"under the same name is an accident or an attack.",
		RunE: func(c *cobra.Command, args []string) error { return a.lock(c.Context(), args, o) }}
	c.Flags().BoolVar(&o.check, "check", false, "write nothing; exit with 2 when a block is out of date")
	c.Flags().BoolVar(&o.update, "update", false, "also change digests that are locked")
	return c
}

func (a *app) statusCmd() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{Use: "status", Short: "List the artifacts: version, digest, whether they are here, who uses them", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.artifactStatus(c.Context(), asJSON) }}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return c
}

func (a *app) artifactStatus(ctx context.Context, asJSON bool) error {
	a.unlocked = true
	config, err := a.config()
	if err != nil {
		return err
	}
	store := a.artifactStore(nil)
	rows := view.ArtifactRows(config, func(of fleet.Artifact) (here, changed bool) { return store.State(ctx, of) })
	if asJSON {
		return view.WriteArtifacts(a.out, config, rows)
	}
	a.outText().Artifacts(rows)
	return nil
}

func (a *app) lock(ctx context.Context, names []string, o lockOptions) error {
	a.unlocked = true
	config, err := a.config()
	if err != nil {
		return err
	}
	chosen, err := artifactsNamed(config.Artifacts, names)
	if err != nil {
		return err
	}
	s := &session{app: a, config: config}
	defer s.close()
	if err := s.openWorld(); err != nil {
		return err
	}
	store := a.artifactStore(s.world)
	var all []view.Lock
	pins := make(map[string]load.Pin)
	failed, differs := false, false
	for _, of := range chosen {
		l := view.Lock{Artifact: of}
		var pin artifact.Pin
		pin, l.Err = store.Hash(ctx, of)
		l.SHA256, l.Size = pin.SHA256, pin.Size
		l.Refused = l.Err == nil && of.SHA256 != "" && of.SHA256 != pin.SHA256 && !o.update
		differs = differs || l.Differs()
		failed = failed || l.Err != nil || l.Refused && !o.check
		if l.Differs() && !l.Refused {
			pins[of.Name] = load.Pin(pin)
		}
		all = append(all, l)
	}
	var files []string
	if !o.check {
		files, err = a.writePins(pins)
	}
	a.outText().Locks(all, files, o.check)
	switch {
	case err != nil:
		return err
	case failed:
		return exit(exitError)
	case o.check && differs:
		return exit(exitDifferent)
	}
	return nil
}

// artifactsNamed returns the artifacts of those names, or all.
func artifactsNamed(all []fleet.Artifact, names []string) ([]fleet.Artifact, error) {
	if len(names) == 0 {
		return all, nil
	}
	var known []string
	for _, of := range all {
		known = append(known, of.Name)
	}
	for _, name := range names {
		if slices.Contains(known, name) {
			continue
		}
		hint := "; macfleet artifacts status lists them"
		if near := fleet.Nearest(name, known); near != "" {
			hint = "; did you mean " + near + "?"
		}
		return nil, fmt.Errorf("no artifact is named %s%s", name, hint)
	}
	return slices.DeleteFunc(slices.Clone(all), func(of fleet.Artifact) bool { return !slices.Contains(names, of.Name) }), nil
}

// writePins writes digests into the configuration's files, and returns those
// that changed.
func (a *app) writePins(pins map[string]load.Pin) ([]string, error) {
	if len(pins) == 0 {
		return nil, nil
	}
	names, err := a.configFiles()
	if err != nil {
		return nil, err
	}
	var changed []string
	for _, name := range names {
		before, err := a.readText(name)
		if err != nil {
			return changed, err
		}
		after, err := load.Lock(name, before, pins)
		if err != nil {
			return changed, err
		}
		if bytes.Equal(before, after) {
			continue
		}
		if err := rewrite(name, after); err != nil {
			return changed, err
		}
		changed = append(changed, name)
	}
	return changed, nil
}

// artifactStore returns where artifacts are found. In a sandbox its world answers
// for URLs, and the cache is part of the world.
func (a *app) artifactStore(world *sandbox.World) *artifact.Store {
	store := artifact.New(a.dir, transport.Downloads(&transport.Counter{}))
	if a.sandbox != "" {
		store.Cache = filepath.Join(a.sandboxDir(), "artifacts")
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
