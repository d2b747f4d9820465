package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox/cloud"
	"github.com/macfleet/macfleet/internal/sandbox/store"
)

// Incident is something that goes wrong in a fleet and can be injected in the sandbox.
type Incident struct {
	Name, Summary string
}

// Incidents returns all incidents.
func Incidents() []Incident {
	var all []Incident
	for _, known := range troubles() {
		all = append(all, known.Incident)
	}
	return all
}

// record is an injected incident, with what healing it needs. It stays until it is healed, even if
// someone has repaired the host meanwhile.
type record struct {
	Incident string    `json:"incident"`
	Since    time.Time `json:"since"`

	Server   string            `json:"server,omitempty"`   // of an incident of the account: the server that it affects
	Name     string            `json:"name,omitempty"`     // the server's name before
	Settings map[string]string `json:"settings,omitempty"` // the Mac's settings, or files by name, before
	File     []byte            `json:"file,omitempty"`     // the marker, or the start-up file, before
	HadFile  bool              `json:"had_file,omitempty"` // whether there was such a file before
	Planted  []byte            `json:"planted,omitempty"`  // the marker that replaced it
	Reported *cloud.Passwords  `json:"told,omitempty"`     // what the provider reported of the passwords before
}

// history is the open incidents of one host, in the order in which they were injected.
type history []*record

func (h history) find(incident string) *record {
	if i := slices.IndexFunc(h, func(r *record) bool { return r.Incident == incident }); i >= 0 {
		return h[i]
	}
	return nil
}

func (h history) without(incident string) history {
	return slices.DeleteFunc(slices.Clone(h), func(r *record) bool { return r.Incident == incident })
}

func (h history) names() []string {
	names := make([]string, len(h))
	for i, r := range h {
		names[i] = r.Incident
	}
	return names
}

// formerName returns the name the server had before an incident changed it, or "".
func (h history) formerName() string {
	if r := cmp.Or(h.find(renamedName), h.find(pooledIncident)); r != nil {
		return r.Name
	}
	return ""
}

func (w *World) historyFile(id string) string {
	return filepath.Join(w.dir, incidentsFolder, id+".json")
}

func (w *World) incidentsOf(id string) (history, error) {
	var open history
	err := store.ReadJSON(w.historyFile(id), &open)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return open, err
}

// incidents returns the open incidents of every host by server id.
func (w *World) incidents() (map[string]history, error) {
	entries, err := os.ReadDir(filepath.Join(w.dir, incidentsFolder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list the sandbox's incidents: %w", err)
	}
	all := map[string]history{}
	for _, entry := range entries {
		id, ok := strings.CutSuffix(entry.Name(), ".json")
		if !ok || strings.HasPrefix(id, ".") {
			continue
		}
		if all[id], err = w.incidentsOf(id); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (w *World) keep(id string, open history) error {
	if len(open) > 0 {
		if err := os.MkdirAll(filepath.Join(w.dir, incidentsFolder), 0o700); err != nil {
			return fmt.Errorf("record the incident: %w", err)
		}
		return store.WriteJSON(w.historyFile(id), open)
	}
	if err := os.Remove(w.historyFile(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the record of the incident: %w", err)
	}
	return nil
}

// Inject injects an incident into a host. One that is still present stays as it is; one that was
// repaired since comes back.
func (w *World) Inject(host, incident string) error {
	wanted, err := troubleOf(incident)
	if err != nil {
		return err
	}
	incident = wanted.Name
	unlock, err := w.changes.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	server, err := w.target(host, wanted)
	if err != nil {
		return err
	}
	open, err := w.incidentsOf(server.ID)
	if err != nil {
		return err
	}
	ctx := w.connections
	if known := open.find(incident); known != nil {
		lasts, err := wanted.lasts(ctx, &victim{w, server, known})
		if err != nil || lasts {
			return wrap("inject", incident, server.Name, err)
		}
		open = open.without(incident)
	}
	next := &victim{w, server, &record{Incident: incident, Since: time.Now().UTC().Truncate(time.Second)}}
	if err := wanted.remember(ctx, next); err != nil {
		return wrap("inject", incident, server.Name, err)
	}
	// The record is written first, so that an interrupted incident can still be healed.
	if err := w.keep(server.ID, append(open, next.record)); err != nil {
		return err
	}
	return wrap("inject", incident, server.Name, wanted.cause(ctx, next))
}

// Heal ends an incident on a host: what is still broken is restored, what was repaired since stays. An
// empty incident means all of that host, an empty host all hosts.
func (w *World) Heal(host, incident string) error {
	if incident != "" {
		wanted, err := troubleOf(incident)
		if err != nil {
			return err
		}
		incident = wanted.Name
	}
	unlock, err := w.changes.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	all, err := w.incidents()
	if err != nil {
		return err
	}
	if _, is := placed(host); is {
		all = map[string]history{host: all[host]}
	} else if host != "" {
		server, err := w.find(host)
		if err != nil {
			return err
		}
		all = map[string]history{server.ID: all[server.ID]}
	}
	var failed []error
	for _, id := range slices.Sorted(maps.Keys(all)) {
		failed = append(failed, w.healHost(w.connections, id, all[id], incident))
	}
	return errors.Join(failed...)
}

// healHost heals in reverse order, since one incident may hide another.
func (w *World) healHost(ctx context.Context, id string, open history, incident string) error {
	server, found, err := w.cloud.Server(id)
	if err != nil {
		return err
	}
	if place, is := placed(id); is {
		server, found = place, true
	}
	for _, known := range slices.Backward(slices.Clone(open)) {
		if incident != "" && known.Incident != incident {
			continue
		}
		// A machine that was returned to the provider has nothing to repair.
		if found {
			cure, err := troubleOf(known.Incident)
			if err == nil {
				err = cure.cure(ctx, &victim{w, server, known})
			}
			if err != nil {
				return wrap("heal", known.Incident, server.Name, err)
			}
		}
		open = open.without(known.Incident)
		if err := w.keep(id, open); err != nil {
			return err
		}
	}
	return nil
}

func wrap(verb, incident, host string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s on %s: %w", verb, incident, host, err)
}
