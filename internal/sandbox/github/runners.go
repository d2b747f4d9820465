package github

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox/agent"
	"github.com/macfleet/macfleet/internal/sandbox/store"
)

// Runner is the entry of a runner, as its file has it.
type Runner struct {
	ID            int64     `json:"id"`
	Scope         string    `json:"scope"` // acme or acme/app
	Name          string    `json:"name"`
	Group         int64     `json:"group"`
	Labels        []string  `json:"labels"` // custom ones
	NoDefault     bool      `json:"no_default_labels,omitempty"`
	Ephemeral     bool      `json:"ephemeral,omitempty"`
	DisableUpdate bool      `json:"disable_update,omitempty"`
	Version       string    `json:"version,omitempty"` // "" = not reported, as by an old Enterprise Server
	Client        string    `json:"client"`            // identifies the credentials on the Mac
	Key           string    `json:"key"`               // identifies the key on the Mac
	Created       time.Time `json:"created"`
	Seen          time.Time `json:"seen"` // the last contact of a listener that has ended

	// Former are labels that an entry had which this one replaced. Jobs that ask for them still reach the runner.
	Former []string `json:"former_labels,omitempty"`
	// Left is when a session expires whose listener was killed, on its Mac's clock.
	Left time.Time `json:"left,omitzero"`
	// Status and Busy replace what GitHub knows of the listener, "" if nothing does.
	Status string `json:"status,omitempty"` // online or offline
	Busy   string `json:"busy,omitempty"`   // yes or no
	// Conflict makes GitHub answer each listener that another one has the session.
	Conflict bool `json:"conflict,omitempty"`
	// ClockOff makes GitHub answer each listener that its clock is wrong.
	ClockOff bool `json:"clock_off,omitempty"`
}

// readOnly are the labels that each runner on these Macs has, unless it was registered without them.
func readOnly() []string { return []string{"self-hosted", "macOS", "ARM64"} }

// An unused entry is deleted after a time, that of an ephemeral runner sooner.
const (
	unused          = 14 * 24 * time.Hour
	unusedEphemeral = 24 * time.Hour
)

func (a *API) runnerFile(id int64) string {
	return a.path(filepath.Join(runnersFolder, strconv.FormatInt(id, 10)+".json"))
}

// state is everything that a request about runners reads.
type state struct {
	runners   []Runner
	listeners []agent.Runner
}

// load reads all runners and listeners. Entries that were not used for long are deleted. The lock is held.
func (a *API) load(now time.Time) (state, error) {
	var s state
	var err error
	if s.listeners, err = a.listeners(); err != nil {
		return s, err
	}
	entries, err := os.ReadDir(a.path(runnersFolder))
	if err != nil {
		return s, fmt.Errorf("list the sandbox's runners: %w", err)
	}
	for _, entry := range entries {
		id, ok := strings.CutSuffix(entry.Name(), ".json")
		if !ok || strings.HasPrefix(id, ".") {
			continue
		}
		var r Runner
		path := a.path(filepath.Join(runnersFolder, entry.Name()))
		if err := store.ReadJSON(path, &r); err != nil {
			return s, err
		}
		if strconv.FormatInt(r.ID, 10) != id {
			return s, fmt.Errorf("%s: its id is %d; fix: name the file after its id", path, r.ID)
		}
		if s.abandoned(r, now) {
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return s, err
			}
			continue
		}
		s.runners = append(s.runners, r)
	}
	slices.SortFunc(s.runners, func(x, y Runner) int { return cmp.Compare(x.ID, y.ID) })
	return s, nil
}

// abandoned reports whether GitHub deletes an entry, since no listener used it for long.
func (s state) abandoned(r Runner, now time.Time) bool {
	limit := unused
	if r.Ephemeral {
		limit = unusedEphemeral
	}
	seen := r.Created
	for _, l := range s.of(r) {
		if l.Runs() {
			return false
		}
		if l.Ended.After(seen) {
			seen = l.Ended
		}
	}
	if r.Seen.After(seen) {
		seen = r.Seen
	}
	return now.Sub(seen) > limit
}

// of returns the listeners that use an entry.
func (s state) of(r Runner) []agent.Runner {
	var all []agent.Runner
	for _, l := range s.listeners {
		if l.ID == r.ID && l.Client == r.Client {
			all = append(all, l)
		}
	}
	return all
}

// session returns the listener that has the session of an entry.
func (s state) session(r Runner) (agent.Runner, bool) {
	for _, l := range s.of(r) {
		if l.Runs() && l.Listening {
			return l, true
		}
	}
	return agent.Runner{}, false
}

// online reports whether GitHub shows a runner as online.
func (s state) online(r Runner) bool {
	if r.Status != "" {
		return r.Status == "online"
	}
	_, ok := s.session(r)
	return ok
}

// busy reports whether GitHub shows a runner as busy.
func (s state) busy(r Runner) bool {
	if r.Busy != "" {
		return r.Busy == "yes"
	}
	l, ok := s.session(r)
	return ok && l.Job != ""
}

// label is a label in an answer.
type label struct {
	ID   int64  `json:"id,omitempty"`
	Name string `json:"name"`
	Type string `json:"type"`
}

// fixed returns the labels of a runner that cannot be changed.
func (r Runner) fixed() []string {
	if r.NoDefault {
		return nil
	}
	return readOnly()
}

func (r Runner) labels() []label {
	var all []label
	for _, name := range r.fixed() {
		all = append(all, label{Name: name, Type: "read-only"})
	}
	for _, name := range r.Labels {
		all = append(all, label{ID: idOf("label " + strings.ToLower(name)), Name: name, Type: "custom"})
	}
	return all
}

// answer is a runner as GitHub answers it.
func (s state) answer(r Runner) map[string]any {
	status := "offline"
	if s.online(r) {
		status = "online"
	}
	out := map[string]any{"id": r.ID, "runner_group_id": r.Group, "name": r.Name, "os": "macOS", "status": status,
		"busy": s.busy(r), "ephemeral": r.Ephemeral, "labels": r.labels()}
	if strings.Contains(r.Scope, "/") {
		delete(out, "runner_group_id")
	}
	if r.Version != "" {
		out["version"] = r.Version
	}
	return out
}

// within returns the runners of a scope.
func (s state) within(scope string) []Runner {
	return slices.DeleteFunc(slices.Clone(s.runners), func(r Runner) bool { return !strings.EqualFold(r.Scope, scope) })
}

func (a *API) listRunners(c *call) (answer, *failure) {
	s, err := a.load(c.now)
	if err != nil {
		return answer{}, internal(err)
	}
	all := s.within(c.scope)
	if name := c.r.URL.Query().Get("name"); name != "" {
		all = slices.DeleteFunc(all, func(r Runner) bool { return r.Name != name })
	}
	return paged(c, "runners", all, func(r Runner) any { return s.answer(r) }), nil
}

// Pages of a list.
const (
	perPage  = 30
	mostPage = 100
)

// paged returns one page of a list, with links to the others.
func paged[T any](c *call, name string, all []T, show func(T) any) answer {
	size := c.parameter("per_page", perPage, mostPage)
	page := c.parameter("page", 1, 1<<30)
	last := max(1, (len(all)+size-1)/size)
	from := min((page-1)*size, len(all))
	out := []any{}
	for _, one := range all[from:min(from+size, len(all))] {
		out = append(out, show(one))
	}
	header := http.Header{}
	var links []string
	link := func(rel string, n int) {
		q := c.r.URL.Query()
		q.Set("page", strconv.Itoa(n))
		u := url.URL{Scheme: "http", Host: c.r.Host, Path: c.r.URL.Path, RawQuery: q.Encode()}
		links = append(links, fmt.Sprintf(`<%s>; rel="%s"`, u.String(), rel))
	}
	if page > 1 {
		link("prev", min(page-1, last))
		link("first", 1)
	}
	if page < last {
		link("next", page+1)
		link("last", last)
	}
	if len(links) > 0 {
		header.Set("Link", strings.Join(links, ", "))
	}
	return answer{status: http.StatusOK, header: header, body: map[string]any{"total_count": len(all), name: out}}
}

// runner returns the runner that a request names.
func (a *API) runner(c *call) (state, Runner, *failure) {
	s, err := a.load(c.now)
	if err != nil {
		return s, Runner{}, internal(err)
	}
	id, failed := c.number("id")
	if failed != nil {
		return s, Runner{}, failed
	}
	for _, r := range s.within(c.scope) {
		if r.ID == id {
			return s, r, nil
		}
	}
	return s, Runner{}, notFound()
}

func (a *API) getRunner(c *call) (answer, *failure) {
	s, r, failed := a.runner(c)
	if failed != nil {
		return answer{}, failed
	}
	return answer{status: http.StatusOK, body: s.answer(r)}, nil
}

// deleteRunner deletes an entry. GitHub refuses only where it knows of the job.
func (a *API) deleteRunner(c *call) (answer, *failure) {
	s, r, failed := a.runner(c)
	if failed != nil {
		return answer{}, failed
	}
	if s.busy(r) {
		return answer{}, invalid("Bad request - Runner %q is still running a job", r.Name)
	}
	if err := a.remove(r.ID); err != nil {
		return answer{}, internal(err)
	}
	return answer{status: http.StatusNoContent}, nil
}

func (a *API) remove(id int64) error {
	if err := os.Remove(a.runnerFile(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("delete the sandbox's runner: %w", err)
	}
	return nil
}

func (a *API) put(r Runner) error { return store.WriteJSON(a.runnerFile(r.ID), r) }

// Runners returns all entries, by id.
func (a *API) Runners() (all []Runner, err error) {
	err = a.change(func(s state, _ time.Time) error { all = s.runners; return nil })
	return all, err
}

// change does something with all entries, with the lock held.
func (a *API) change(do func(state, time.Time) error) error {
	return a.guarded(func() error {
		own, err := a.settings()
		if err != nil {
			return err
		}
		s, err := a.load(a.now(own))
		if err != nil {
			return err
		}
		return do(s, a.now(own))
	})
}

// Edit changes the entry with an id. It reports whether there is one.
func (a *API) Edit(id int64, change func(*Runner)) (found bool, err error) {
	err = a.change(func(s state, _ time.Time) error {
		for _, r := range s.runners {
			if r.ID == id {
				found = true
				change(&r)
				return a.put(r)
			}
		}
		return nil
	})
	return found, err
}

// Delete deletes an entry, as a person does on GitHub's pages.
func (a *API) Delete(id int64) error {
	return a.guarded(func() error { return a.remove(id) })
}

// Put writes an entry as it is.
func (a *API) Put(r Runner) error {
	return a.guarded(func() error { return a.put(r) })
}
