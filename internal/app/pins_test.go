package app

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/providers/kubernetes"
)

// TestPinsOfThisMachine: the note of a release on this machine does not hide the pin that the cluster said since.
func TestPinsOfThisMachine(t *testing.T) {
	t.Parallel()
	folder, at := t.TempDir(), time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	local := localPins{hosts.KnownHosts{Path: filepath.Join(folder, "own")}, hosts.KnownHosts{Path: filepath.Join(folder, "cache")}}
	pin := plan.Pin{ServerID: "id-1", Name: "acme-1", Key: hostKey, Since: at.Add(time.Hour)}
	note := plan.Pin{ServerID: "id-1", Name: "acme-1", Key: hostKey, Since: at, Stage: plan.Released}
	must(t, local.own.Update(func([]plan.Pin) []plan.Pin { return []plan.Pin{note} }))
	must(t, local.cache.Update(func([]plan.Pin) []plan.Pin { return []plan.Pin{pin} }))
	check := func(when string, store kubernetes.PinStore) {
		if pins, err := store.All(); err != nil || len(pins) != 1 || pins[0] != pin {
			t.Errorf("%s: %+v, %v", when, pins, err)
		}
	}
	check("both files", local)
	must(t, local.Update(func(all []plan.Pin) []plan.Pin { return all }))
	check("after an update", local)
	must(t, local.gather())
	check("this machine's own", local.own)
}

const hostKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGVgseJVNntz69z2HpG97NLa3JAoOwNuSxMvYmCJ9rBr"

// TestPinsUnread: pins that the cluster does not give are an error where something is changed. What only observes
// uses this machine's with a warning, and takes no pinned host for an unknown one.
func TestPinsUnread(t *testing.T) {
	t.Parallel()
	pin := plan.Pin{ServerID: "id-1", Name: "acme-1", Key: hostKey, Since: time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)}
	for name, answer := range map[string]http.HandlerFunc{
		"unauthorized": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
		"forbidden":    func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) },
		"broken":       func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"another page": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>log in first</html>")) },
		"no answer":    func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"cut off":      func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"a damaged line": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"7"},"data":{"pins.json":"{\"name\":\"acme-1\"}\n"}}`))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(answer)
			t.Cleanup(server.Close)
			ctx := t.Context()
			if name == "no answer" || name == "cut off" { // the client tries such a server again for long
				bounded, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
				t.Cleanup(cancel)
				ctx = bounded
			}
			client, err := kubernetes.New(kubernetes.Options{URL: server.URL, Token: "sandbox-token", Server: "the sandbox", Namespace: "macfleet"})
			must(t, err)
			t.Cleanup(client.Close)
			folder := t.TempDir()
			local := localPins{hosts.KnownHosts{Path: filepath.Join(folder, "known_hosts")}, hosts.KnownHosts{Path: filepath.Join(folder, "cluster_known_hosts")}}
			must(t, local.cache.Update(func([]plan.Pin) []plan.Pin { return []plan.Pin{pin} }))
			shared := clusterPins{client.Pins(ctx, kubernetes.PinOptions{Cache: local.cache, Own: local.own, Unprepared: local})}
			if pins, err := shared.All(); err == nil || pins != nil {
				t.Errorf("what changes something reads %v, %v", pins, err)
			}
			if err := shared.Update(func([]plan.Pin) []plan.Pin { t.Error("it changes pins that it could not read"); return nil }); err == nil {
				t.Error("the pins were written")
			}
			said := ""
			looking := &lookedUpPins{clusterPins: shared, ctx: t.Context(), local: local, warn: func(text string) { said = text }}
			pins, err := looking.All()
			if err != nil || len(pins) != 1 || pins[0] != pin || said == "" || looking.Recall().Unread == "" {
				t.Errorf("what looks reads %v, %v, says %q and recalls %+v", pins, err, said, looking.Recall())
			}
			if kept, err := local.cache.All(); err != nil || len(kept) != 1 {
				t.Errorf("this machine remembers %v, %v", kept, err)
			}
		})
	}
}
