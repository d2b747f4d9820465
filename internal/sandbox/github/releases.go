package github

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox/store"
)

// Release is a version of the runner that GitHub published. A zero time means that none is set.
type Release struct {
	Version        string    `json:"version"`
	Published      time.Time `json:"published"`
	RunsUntil      time.Time `json:"runs_until,omitzero"`      // after it, a listener gets no jobs and exits
	RegistersUntil time.Time `json:"registers_until,omitzero"` // after it, no runner registers
	Refused        bool      `json:"refused,omitempty"`        // an outage refuses it
}

const day = 24 * time.Hour

// releasesAt returns the releases of a world that is created at a time, the newest first.
func releasesAt(now time.Time) []Release {
	ago := func(days int) time.Time { return now.Add(time.Duration(-days) * day).UTC().Truncate(day) }
	return []Release{
		{Version: "2.337.0", Published: ago(5)},
		{Version: "2.336.0", Published: ago(60), RunsUntil: ago(-25), RegistersUntil: ago(-25)},
		{Version: "2.335.1", Published: ago(102), RunsUntil: ago(30), RegistersUntil: ago(30)},
		{Version: "2.334.0", Published: ago(150), RunsUntil: ago(72), RegistersUntil: ago(72)},
	}
}

// Releases returns the releases, the newest first. The first call writes their file, so that a world keeps its dates.
func (a *API) Releases() (all []Release, err error) {
	err = a.guarded(func() (err error) { all, err = a.releases(); return err })
	return all, err
}

// releases is Releases with the lock held.
func (a *API) releases() ([]Release, error) {
	var all []Release
	err := store.ReadJSON(a.path(releasesFile), &all)
	if errors.Is(err, fs.ErrNotExist) {
		all = releasesAt(a.options.Now())
		return all, store.WriteJSON(a.path(releasesFile), all)
	}
	return all, err
}

// SetReleases replaces the releases, the newest first.
func (a *API) SetReleases(change func([]Release) []Release) error {
	return a.guarded(func() error {
		all, err := a.releases()
		if err != nil {
			return err
		}
		return store.WriteJSON(a.path(releasesFile), change(all))
	})
}

func (a *API) release(version string) (Release, bool, error) {
	all, err := a.releases()
	for _, r := range all {
		if r.Version == version {
			return r, true, err
		}
	}
	return Release{}, false, err
}

// ArchiveName returns the name of the archive of a version for these Macs.
func ArchiveName(version string) string { return "actions-runner-osx-arm64-" + version + ".tar.gz" }

func (a *API) downloads(*call) (answer, *failure) {
	all, err := a.releases()
	if err != nil {
		return answer{}, internal(err)
	}
	out := []any{}
	if len(all) > 0 {
		newest := all[0].Version
		sum := sha256.Sum256(a.options.Archive(newest))
		out = append(out, download("linux", "x64", newest, "tar.gz", sum[:]), download("osx", "x64", newest, "tar.gz", sum[:]),
			download("osx", "arm64", newest, "tar.gz", sum[:]))
	}
	return answer{status: http.StatusOK, body: out}, nil
}

// download is the archive for one system. Only that of these Macs can be downloaded, so the digests of the others are
// not theirs.
func download(system, architecture, version, extension string, sum []byte) any {
	name := fmt.Sprintf("actions-runner-%s-%s-%s.%s", system, architecture, version, extension)
	return map[string]any{"os": system, "architecture": architecture, "filename": name, "sha256_checksum": hex.EncodeToString(sum),
		"download_url": "https://github.com/actions/runner/releases/download/v" + version + "/" + name}
}

// ofRunner serves two routes that the mux cannot tell apart: deprecations/VERSION and ID/labels.
func (a *API) ofRunner(c *call) (answer, *failure) {
	switch {
	case c.r.PathValue("id") == "deprecations":
		return a.deprecations(c.r.PathValue("part"))
	case c.r.PathValue("part") == "labels":
		return a.getLabels(c)
	}
	return answer{}, notFound()
}

func (a *API) deprecations(version string) (answer, *failure) {
	r, ok, err := a.release(version)
	if err != nil {
		return answer{}, internal(err)
	}
	if !ok {
		return answer{}, notFound()
	}
	out := map[string]any{"runner_version": r.Version, "runtime_deprecates_at": nil, "registration_deprecates_at": nil}
	if !r.RunsUntil.IsZero() {
		out["runtime_deprecates_at"] = r.RunsUntil.UTC().Format(time.RFC3339)
	}
	if !r.RegistersUntil.IsZero() {
		out["registration_deprecates_at"] = r.RegistersUntil.UTC().Format(time.RFC3339)
	}
	return answer{status: http.StatusOK, body: out}, nil
}
