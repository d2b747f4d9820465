package kube

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/macfleet/macfleet/internal/sandbox/store"
)

const (
	// watchPause is how long a watch waits between two reads of the state.
	watchPause = 50 * time.Millisecond

	// watchLimit ends a watch whose client set no timeout.
	watchLimit = 30 * time.Minute

	graveFile = "deleted.jsonl"
	// graveSize limits the file of deletions in bytes. At least half of it is kept.
	graveSize = 256 << 10
)

// grave is a deletion that watchers may not have seen yet. One without an object marks the start of
// the recorded deletions.
type grave struct {
	Version  uint64         `json:"version"`
	Resource string         `json:"resource,omitempty"`
	Object   map[string]any `json:"object,omitempty"`
}

// bury records the deletion of an object, without secret data.
func (s *state) bury(resource string, o *object, version uint64) error {
	rest := o.DeepCopy()
	for _, name := range []string{"data", "status"} {
		delete(rest.Object, name)
	}
	rest.SetResourceVersion(strconv.FormatUint(version, 10))
	path := filepath.Join(s.dir, graveFile)
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("note a deletion in the sandbox's cluster: %w", err)
	}
	_, err = file.Write(append(encoded(grave{version, resource, rest.Object}), '\n'))
	info, failed := file.Stat()
	if err = errors.Join(err, failed, file.Close()); err != nil {
		return fmt.Errorf("note a deletion in the sandbox's cluster: %w", err)
	}
	if info.Size() < graveSize {
		return nil
	}
	all, err := s.graves()
	if err != nil {
		return err
	}
	var kept []byte
	for i, one := range all[len(all)/2:] {
		if i == 0 {
			one = grave{Version: one.Version}
		}
		kept = append(append(kept, encoded(one)...), '\n')
	}
	return store.WriteFile(path, kept)
}

// graves returns the recorded deletions, the oldest first.
func (s *state) graves() ([]grave, error) {
	file, err := os.Open(filepath.Join(s.dir, graveFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the deletions in the sandbox's cluster: %w", err)
	}
	defer file.Close() // nothing was written
	var all []grave
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, maxBody)
	for lines.Scan() {
		var one grave
		if json.Unmarshal(lines.Bytes(), &one) == nil { // a killed process left an incomplete line
			all = append(all, one)
		}
	}
	return all, lines.Err()
}

// checkWatch refuses an invalid watch before it starts.
func (a *API) checkWatch(r *request) error {
	if _, err := r.kind.selector(r.query); err != nil {
		return err
	}
	from, err := strconv.ParseUint(r.query.Get("resourceVersion"), 10, 64)
	if r.query.Get("resourceVersion") != "" && err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("resourceVersion %q is not a number", r.query.Get("resourceVersion")))
	}
	graves, err := a.state.graves()
	if err == nil && from > 0 && len(graves) > 0 && graves[0].Object == nil && from < graves[0].Version {
		return apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", from, graves[0].Version))
	}
	return err
}

// event is a line of a watch.
type event struct {
	Type   string `json:"type"`
	Object any    `json:"object"`
}

// watcher records what its client has received.
type watcher struct {
	api     *API
	r       *request
	matches func(*object) bool
	sent    map[string]*object
	from    uint64 // the version up to which the client knows the state
	first   bool
}

// watch sends a client the existing objects and then the changes, until its timeout or disconnection.
// It polls the state, since other processes may write to it.
func (a *API) watch(w http.ResponseWriter, r *request) {
	matches, err := r.kind.selector(r.query)
	if err != nil {
		reply(w, failure(err))
		return
	}
	limit := watchLimit
	if seconds, err := strconv.Atoi(r.query.Get("timeoutSeconds")); err == nil && seconds > 0 {
		limit = time.Duration(seconds) * time.Second
	}
	from, _ := strconv.ParseUint(r.query.Get("resourceVersion"), 10, 64) // checked before
	if r.query.Get("sendInitialEvents") == "true" {
		from = 0
	}
	watching := &watcher{api: a, r: r, matches: matches, sent: map[string]*object{}, from: from, first: true}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w)
	encoder := json.NewEncoder(w)
	end := time.NewTimer(limit)
	defer end.Stop()
	tick := time.NewTicker(watchPause)
	defer tick.Stop()
	for {
		events, err := watching.look()
		if err != nil {
			events = []event{{"ERROR", failure(err).body}}
		}
		for _, one := range events {
			if encoder.Encode(one) != nil {
				return
			}
		}
		if flush.Flush() != nil || err != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-end.C:
			return
		case <-tick.C:
		}
	}
}

// look returns the events since the last call.
func (w *watcher) look() ([]event, error) {
	var events []event
	var err error
	_, failed := w.api.locked(func(now time.Time) (answer, error) {
		if version := w.api.state.version; w.first || version != w.from {
			w.r.now = now
			events, err = w.changes(version)
		}
		return answer{}, err
	})
	return events, failed
}

// changes compares the state with what the client has received.
func (w *watcher) changes(version uint64) ([]event, error) {
	present, err := w.api.selected(w.r)
	if err != nil {
		return nil, err
	}
	var events []event
	if w.first && w.from > 0 {
		if events, err = w.missed(); err != nil {
			return nil, err
		}
	}
	now := map[string]*object{}
	for _, o := range present {
		now[key(o)] = o
		before, known := w.sent[key(o)]
		switch {
		case known && before.GetUID() == o.GetUID() && before.GetResourceVersion() == o.GetResourceVersion():
		case known && before.GetUID() == o.GetUID():
			events = append(events, w.event("MODIFIED", o))
		case known:
			events = append(events, w.event("DELETED", before), w.event("ADDED", o))
		case w.first && w.from > 0 && !newer(o, w.from):
		case w.first && w.from > 0:
			events = append(events, w.event("MODIFIED", o))
		default:
			events = append(events, w.event("ADDED", o))
		}
	}
	for name, o := range w.sent {
		if now[name] == nil {
			events = append(events, w.event("DELETED", o))
		}
	}
	if w.first && w.r.query.Get("sendInitialEvents") == "true" {
		events = append(events, w.bookmark(version))
	}
	w.sent, w.from, w.first = now, version, false
	return events, nil
}

// missed returns the deletions since the client's version.
func (w *watcher) missed() ([]event, error) {
	graves, err := w.api.state.graves()
	var events []event
	for _, one := range graves {
		gone := &object{Object: one.Object}
		if one.Resource == w.r.resource && one.Version > w.from && w.matches(gone) &&
			(w.r.objectNamespace() == "" || gone.GetNamespace() == w.r.objectNamespace()) {
			events = append(events, w.event("DELETED", gone))
		}
	}
	return events, err
}

func (w *watcher) event(kind string, o *object) event {
	return event{kind, renderObject(w.r, accepted(w.r.Header.Get("Accept")), o)}
}

// bookmark reports that all initial objects were sent.
func (w *watcher) bookmark(version uint64) event {
	o := &object{Object: map[string]any{}}
	o.SetGroupVersionKind(w.r.kind.gvk())
	o.SetResourceVersion(strconv.FormatUint(version, 10))
	o.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	return event{"BOOKMARK", o}
}

func newer(o *object, version uint64) bool {
	own, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	return err == nil && own > version
}
