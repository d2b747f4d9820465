package scaleway_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/providers/scaleway"
	"github.com/macfleet/macfleet/providers/transport"
)

// recordedServer is the server of the fixtures.
func recordedServer() inventory.Server {
	return inventory.Server{ID: serverID, Name: "acme-pool-1", Type: "M2-L", Zone: "fr-par-1", ProjectID: project, Address: "198.51.100.1",
		OSFamily: "Tahoe", SystemID: "cafecafe-0000-4000-8000-000000000261", Status: "ready", Delivered: true,
		Created: time.Date(2026, 3, 20, 10, 0, 0, 0, time.UTC), DeletableAt: time.Date(2026, 3, 21, 10, 0, 0, 0, time.UTC)}
}

// changed returns the recorded server with a change.
func changed(change func(*inventory.Server)) inventory.Server {
	s := recordedServer()
	change(&s)
	return s
}

// TestServers replays recorded servers: unknown fields and words, missing and null ones are accepted.
func TestServers(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]inventory.Server{
		"get-server":           recordedServer(),
		"get-server-scheduled": changed(func(s *inventory.Server) { s.DeletionScheduled = true }),
		"get-server-runner":    changed(func(s *inventory.Server) { s.RunnerConfigurations = "a1,b2" }),
		"get-server-unknown":   changed(func(s *inventory.Server) { s.Status = "hibernating" }),
		"get-server-starting":  {ID: serverID, Name: "acme-pool-1", Type: "M2-L", Zone: "fr-par-1", ProjectID: project, Status: "starting"},
	} {
		c, _, _ := replayed(t, func(*http.Request) []byte { return fixture(t, "calls", name+".http") })
		got, err := c.Get(t.Context(), "fr-par-1", serverID)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: error %v, server (-want +got):\n%s", name, err, diff)
		}
		if _, err := c.Get(t.Context(), "fr-par-1", "another"); inventory.ClassOf(err) != inventory.UnexpectedAnswer {
			t.Errorf("%s: another server's object was accepted: %v", name, err)
		}
	}
}

// TestCalls replays one recorded answer per call.
func TestCalls(t *testing.T) {
	t.Parallel()
	const diagnostic = "/connectivity-diagnostics/d1a60000-0000-4000-8000-000000000001"
	processing := true
	for name, tc := range map[string]struct {
		recorded map[string]string // by method and the last part of the path
		do       func(*scaleway.Client) (any, error)
		want     any
	}{
		"list": {map[string]string{"GET /servers": "list-servers"},
			func(c *scaleway.Client) (any, error) { return c.List(t.Context()) }, []inventory.Server{recordedServer()}},
		"list of none": {map[string]string{"GET /servers": "list-servers-none"},
			func(c *scaleway.Client) (any, error) { return c.List(t.Context()) }, []inventory.Server{}},
		"list of null": {map[string]string{"GET /servers": "list-servers-null"},
			func(c *scaleway.Client) (any, error) { return c.List(t.Context()) }, []inventory.Server{}},
		"catalogue": {map[string]string{"GET /server-types": "list-server-types", "GET /os": "list-os"},
			func(c *scaleway.Client) (any, error) { return c.Catalogue(t.Context()) },
			inventory.Catalogue{Offers: []inventory.Offer{{Type: "M2-L", Zone: "fr-par-1", Stock: inventory.NoStock, MinLease: 24 * time.Hour}, {Type: "M2-L-ASAHI", Zone: "fr-par-1", Stock: inventory.LowStock}},
				Systems: []inventory.System{{ID: "cafecafe-0000-4000-8000-000000000261", Name: "macos-tahoe-26.6.1", Family: "Tahoe", Version: "26.6.1", Zone: "fr-par-1",
					Types: []string{"M2-L", "M4-XL"}, Fast: []string{"M2-L"}}}}},
		"reboot": {map[string]string{"POST /reboot": "reboot"},
			func(c *scaleway.Client) (any, error) { return nil, c.Reboot(t.Context(), "fr-par-1", serverID) }, nil},
		"reinstall": {map[string]string{"POST /reinstall": "reinstall"},
			func(c *scaleway.Client) (any, error) {
				return nil, c.Reinstall(t.Context(), "fr-par-1", serverID, "os-1")
			}, nil},
		"schedule": {map[string]string{"PATCH /" + serverID: "update-server", "GET /" + serverID: "get-server-scheduled"},
			func(c *scaleway.Client) (any, error) {
				return nil, c.ScheduleDeletion(t.Context(), "fr-par-1", serverID, true)
			}, nil},
		"check rename": {map[string]string{"PATCH /" + serverID: "update-server"},
			func(c *scaleway.Client) (any, error) { return nil, c.CheckRename(t.Context(), "fr-par-1", serverID) }, nil},
		"diagnose": {map[string]string{"POST /connectivity-diagnostics": "start-diagnostic", "GET " + diagnostic[len("/connectivity-diagnostics"):]: "get-diagnostic"},
			func(c *scaleway.Client) (any, error) { return c.Diagnose(t.Context(), "fr-par-1", serverID) },
			inventory.Diagnosis{Text: "server up, port 22 closed, VNC port open, agent up", Actions: []string{"reboot", "reinstall"}, Detailed: true, Alive: true, Agent: true,
				VNC: true, CheckedIn: time.Date(2026, 3, 25, 9, 0, 0, 0, time.UTC)}},
		"register a key": {map[string]string{"GET /ssh-keys": "list-ssh-keys"},
			func(c *scaleway.Client) (any, error) { return c.RegisterKey(t.Context(), "mine", fleetKey) },
			inventory.SSHKey{ID: "6e600000-0000-4000-8000-000000000001", Name: "fleet", Public: fleetKey, Project: project}},
		"remove a key": {map[string]string{"DELETE /6e600000-0000-4000-8000-000000000001": "delete-ssh-key"},
			func(c *scaleway.Client) (any, error) {
				return nil, c.RemoveKey(t.Context(), "6e600000-0000-4000-8000-000000000001")
			}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c, _, _ := replayed(t, func(r *http.Request) []byte {
				file := tc.recorded[r.Method+" "+r.URL.Path[strings.LastIndex(r.URL.Path, "/"):]]
				if file == "get-diagnostic" && processing {
					processing, file = false, "get-diagnostic-processing"
				}
				if file == "" {
					t.Errorf("unexpected request %s %s", r.Method, r.URL.Path)
					file = "get-server"
				}
				return fixture(t, "calls", file+".http")
			})
			got, err := tc.do(c)
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("error %v, answer (-want +got):\n%s", err, diff)
			}
		})
	}
}

// world is a project with servers, whose state a test changes between requests.
type world struct {
	get    string   // fixture of a read of the one server
	lists  []string // ids of each list; the last one is repeated
	denied bool     // lists are denied
	asked  int
}

func (w *world) answer(t *testing.T, r *http.Request) []byte {
	if !strings.HasSuffix(r.URL.Path, "/servers") {
		return fixture(t, w.get+".http")
	}
	if w.asked++; w.denied {
		return fixture(t, "errors/denied.http")
	}
	var objects []string
	for _, id := range strings.Fields(w.lists[min(w.asked, len(w.lists))-1]) {
		objects = append(objects, fmt.Sprintf(`{"id":%q,"name":%q}`, id, "name-"+id))
	}
	return fmt.Appendf(nil, "HTTP/1.1 200 OK\nContent-Type: application/json\n\n"+`{"total_count":%d,"servers":[%s]}`, len(objects), strings.Join(objects, ","))
}

// TestGone: only two whole lists that still have a known server say that a server was deleted.
func TestGone(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		world
		listed string // what the run's own list had before; "" = it made none
		gone   bool
		err    string
	}{
		"deleted":            {world: world{get: "errors/denied", lists: []string{"b c"}}, listed: serverID + " b c", gone: true},
		"deleted, 404":       {world: world{get: "errors/not-found", lists: []string{"b"}}, listed: serverID + " b", gone: true},
		"the only one":       {world: world{get: "errors/denied", lists: []string{""}}, listed: serverID, gone: true},
		"there":              {world: world{get: "calls/get-server"}},
		"denied but listed":  {world: world{get: "errors/denied", lists: []string{serverID + " b"}}, listed: serverID + " b"},
		"back in the second": {world: world{get: "errors/denied", lists: []string{"b", serverID + " b"}}, listed: serverID + " b"},
		"all others missing": {world: world{get: "errors/denied", lists: []string{""}}, listed: serverID + " b c", err: "lists no server that macfleet knows"},
		"another project":    {world: world{get: "errors/denied", lists: []string{"x y"}}, listed: serverID + " b c", err: "lists no server that macfleet knows"},
		"never listed":       {world: world{get: "errors/denied", lists: []string{""}}, err: "lists no server that macfleet knows"},
		"lists denied":       {world: world{get: "errors/denied", denied: true}, err: "AppleSiliconFullAccess"},
		"revoked key":        {world: world{get: "errors/unauthenticated"}, err: "rejects the API key"},
		"proxy":              {world: world{get: "errors/html-403"}, err: "instead of JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := world{lists: []string{tc.listed}}
			c, _, _ := replayed(t, func(r *http.Request) []byte { return now.answer(t, r) })
			if tc.listed != "" {
				_, err := c.List(t.Context())
				must(t, err)
			}
			now = tc.world
			gone, err := c.Gone(t.Context(), "fr-par-1", serverID)
			if gone != tc.gone || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("gone %t, error %v", gone, err)
			}
			if gone && now.asked != 2 {
				t.Errorf("gone after %d lists", now.asked)
			}
		})
	}
}

// TestForeignServer: a server of another project in the list is an error: the filter was not applied.
func TestForeignServer(t *testing.T) {
	t.Parallel()
	c, _, _ := replayed(t, func(*http.Request) []byte {
		return []byte("HTTP/1.1 200 OK\nContent-Type: application/json\n\n" + `{"total_count":1,"servers":[{"id":"a","project_id":"theirs"}]}`)
	})
	if list, err := c.List(t.Context()); err == nil || list != nil || !strings.Contains(err.Error(), "project theirs") {
		t.Errorf("%v, error %v", list, err)
	}
}

// TestRename writes only while the server has the name it is reported to have, and says who has it when another run renames it right
// after. Where the answer of a rename is lost, the name is read before it is sent again.
func TestRename(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		before, after string // the name, and that once the first rename was sent
		lost          bool   // the answer of the first rename
		writes        int
		found         string // of the *RacedError, "" = none
	}{
		"free":               {"pool-1", "ours", false, 1, ""},
		"done already":       {"ours", "ours", false, 0, ""},
		"left the pool":      {"theirs", "theirs", false, 0, "theirs"},
		"taken right after":  {"pool-1", "theirs", false, 1, "theirs"},
		"lost, carried out":  {"pool-1", "ours", true, 1, ""},
		"lost, not received": {"pool-1", "pool-1", true, 2, ""},
		"lost, raced":        {"pool-1", "theirs", true, 1, "theirs"},
	} {
		writes, current := 0, tc.before
		c, _, _ := replayed(t, func(r *http.Request) []byte {
			if r.Method == http.MethodPatch {
				switch writes++; {
				case writes > 1:
					current = "ours"
				case tc.lost:
					current = tc.after
					return fixture(t, "errors/html-502.http")
				default:
					current = tc.after
				}
			}
			return fmt.Appendf(nil, "HTTP/1.1 200 OK\nContent-Type: application/json\n\n"+`{"id":"a","name":%q}`, current)
		})
		err := c.Rename(t.Context(), "fr-par-1", "a", "pool-1", "ours")
		var raced *scaleway.RacedError
		if errors.As(err, &raced) != (tc.found != "") || raced != nil && raced.Found != tc.found || raced == nil && err != nil || writes != tc.writes {
			t.Errorf("%s: %d writes, error %v", name, writes, err)
		}
	}
}

// TestDeadline: a client never waits beyond the caller's deadline, and says why it did not wait.
func TestDeadline(t *testing.T) {
	t.Parallel()
	c, sent, pauses := replayed(t, func(*http.Request) []byte { return fixture(t, "errors/rate-limited-retry-after.http") })
	ctx, stop := context.WithTimeout(t.Context(), 6*time.Second)
	defer stop()
	_, err := c.Get(ctx, "fr-par-1", serverID)
	if inventory.ClassOf(err) != inventory.RateLimited || len(sent.asked) != 1 || len(*pauses) != 0 {
		t.Errorf("%d requests, pauses %v, error %v", len(sent.asked), *pauses, err)
	}
}

// TestWaiting: each repeated request says what it waits for, and under which id the provider knows it.
func TestWaiting(t *testing.T) {
	t.Parallel()
	var got []transport.Waiting
	answers := []string{"errors/rate-limited.http", "errors/internal.http", "errors/html-200.http", "calls/get-server.http"}
	asked := 0
	c := client(t, func(o *scaleway.Options) {
		o.Waiting = func(w transport.Waiting) { got = append(got, w) }
		o.HTTP = &http.Client{Transport: &replay{t: t, recorded: func(*http.Request) []byte {
			asked++
			return fixture(t, answers[asked-1])
		}}}
	})
	c.Sleep(func(time.Duration) {})
	_, err := c.Get(t.Context(), "fr-par-1", serverID)
	must(t, err)
	var whys []string
	for _, w := range got {
		whys = append(whys, fmt.Sprint(w.Try, w.Method, w.Why, w.For, w.RequestID != ""))
	}
	want := []string{"1 GET rate limit 1s true", "2 GET server fault 500 400ms true", "3 GET incomplete or unexpected answer 800ms true"}
	for i := range want {
		want[i] = strings.ReplaceAll(want[i], " ", "")
		whys[i] = strings.ReplaceAll(whys[i], " ", "")
	}
	if !slices.Equal(whys, want) {
		t.Errorf("%q, want %q", whys, want)
	}
}
