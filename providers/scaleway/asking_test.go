package scaleway_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/providers/scaleway"
)

// TestMetadataIsNeverAsked: the SDK does not query the metadata service, which would cost requests and time.
func TestMetadataIsNeverAsked(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	c := api(t, func(r *http.Request) (int, any) {
		if asked.Add(1); strings.Contains(r.URL.Path, "metadata") {
			t.Error("asked for /metadata")
		}
		if strings.HasSuffix(r.URL.Path, "/servers") {
			return 200, map[string]any{"total_count": 1, "servers": []any{object("a", "one")}}
		}
		return 200, object("a", "one")
	}, twoZones)
	_, err := c.List(t.Context())
	_, gerr := c.Get(t.Context(), "fr-par-1", "a")
	if err := errors.Join(err, gerr); err != nil || asked.Load() != 3 {
		t.Errorf("%d requests, error %v", asked.Load(), err)
	}
}

// TestBlackHole: nothing is sent before something is requested, and a caller that stops leaves at once.
func TestBlackHole(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0") // it accepts, and never says a word
	must(t, err)
	accepted := make(chan net.Conn, 16)
	go func() {
		defer close(accepted)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- conn
		}
	}()
	c := client(t, func(o *scaleway.Options) {
		o.HTTP, o.URL = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, "http://"+l.Addr().String()
	})
	if len(accepted) > 0 {
		t.Error("a request was sent before it was needed")
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { _, err := c.List(ctx); ended <- err }()
	conn := <-accepted // the list is under way
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("it returned %v", err)
	}
	if err := errors.Join(conn.Close(), l.Close()); err != nil {
		t.Error(err)
	}
	for conn := range accepted {
		_ = conn.Close()
	}
}

// TestListIsWhole: the pages must bring as many servers as the provider counts. What changes while they are read is
// read again; a list that stays short is an error, never servers that are gone.
func TestListIsWhole(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		there  int
		counts func(reading int) int // what total_count says, by how often the first page was requested
		want   string                // in the error; empty: the list is whole
		asked  int64
	}{
		"none":               {0, func(int) int { return 0 }, "", 1},
		"one page":           {100, func(int) int { return 100 }, "", 1},
		"three pages":        {250, func(int) int { return 250 }, "", 3},
		"short once":         {7, func(n int) int { return 12 - 5*min(n-1, 1) }, "", 3},
		"always short":       {7, func(int) int { return 12 }, "counts 12 servers in project " + project + " but listed 7", 6},
		"nothing of many":    {0, func(int) int { return 12 }, "counts 12 servers", 3},
		"more than counted":  {7, func(int) int { return 5 }, "counts 5 servers", 3},
		"no count in answer": {7, func(int) int { return 0 }, "counts 0 servers", 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int64
			readings := 0
			c := api(t, func(r *http.Request) (int, any) {
				asked.Add(1)
				page, _ := strconv.Atoi(r.URL.Query().Get("page"))
				if page == 1 {
					readings++
				}
				servers := []any{}
				for i := (page - 1) * 100; i < min(page*100, tc.there); i++ {
					servers = append(servers, object(fmt.Sprint(i), fmt.Sprintf("name-%03d", i)))
				}
				return 200, map[string]any{"total_count": tc.counts(readings), "servers": servers}
			})
			list, err := c.List(t.Context())
			switch {
			case tc.want == "" && (err != nil || len(list) != tc.there):
				t.Errorf("%d servers, error %v", len(list), err)
			case tc.want != "" && (err == nil || list != nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "fr-par-1")):
				t.Errorf("%d servers, error %v", len(list), err)
			}
			if asked.Load() != tc.asked {
				t.Errorf("%d requests, want %d", asked.Load(), tc.asked)
			}
		})
	}
}

func denial(details ...any) map[string]any {
	return map[string]any{"type": "permissions_denied", "message": "insufficient permissions", "details": details}
}

// TestDenied: a denial says what was denied, where, and under which id the provider knows the request. Of one server it
// says that a deleted one answers the same.
func TestDenied(t *testing.T) {
	t.Parallel()
	of := func(action, resource string) map[string]any {
		return map[string]any{"action": action, "resource": resource}
	}
	list := func(c *scaleway.Client) error { _, err := c.List(t.Context()); return err }
	get := func(c *scaleway.Client) error { _, err := c.Get(t.Context(), "fr-par-1", "a"); return err }
	rename := func(c *scaleway.Client) error { return c.CheckRename(t.Context(), "fr-par-1", "a") }
	passwords := func(c *scaleway.Client) error { _, err := c.Passwords(t.Context(), "fr-par-1", "a"); return err }
	for name, tc := range map[string]struct {
		do      func(*scaleway.Client) error
		body    map[string]any
		want    []string
		deleted bool
	}{
		"list":          {list, denial(of("list", "server")), []string{`denies "list server"`, "zone fr-par-1", "(request id 4f2c-of-GET)"}, false},
		"read":          {get, denial(of("read", "server")), []string{`denies "read server"`, "read server a"}, true},
		"passwords":     {passwords, denial(of("read", "server")), []string{`denies "read server"`}, true},
		"write":         {rename, denial(of("write", "server")), []string{`denies "write server"`, "(request id 4f2c-of-PATCH)"}, true},
		"several":       {rename, denial(of("write", "server"), of("read", "project")), []string{`"write server", "read project"`}, true},
		"without a why": {list, denial(), []string{"the missing permission is not named"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := tc.do(api(t, func(*http.Request) (int, any) { return 403, tc.body }))
			if !errors.Is(err, inventory.ErrDenied) {
				t.Fatalf("error %v", err)
			}
			for _, want := range append(tc.want, "AppleSiliconFullAccess", project) {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q lacks %q", err, want)
				}
			}
			if got := strings.Contains(err.Error(), "deleted server gives the same error"); got != tc.deleted {
				t.Errorf("%q speaks of deletion: %t", err, got)
			}
		})
	}
}

// TestPassingStates: what a passing state forbids is done when the server has left it; another state is an error at once.
func TestPassingStates(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		code  int
		state string // of the error
		fails int64  // so often
		want  string // in the error
		tries int64
	}{
		"passes":       {409, "transient_state", 3, "", 4},
		"never passes": {409, "transient_state", 1000, "did not leave that state", 40},
		"locked":       {409, "locked", 1000, "locked by Scaleway", 1},
		"unsure":       {500, "internal_error", 1000, "may have been carried out", 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var tries atomic.Int64
			c := api(t, func(r *http.Request) (int, any) {
				name := "pool-1"
				if r.Method == http.MethodPatch && tries.Add(1) <= tc.fails {
					return tc.code, map[string]any{"type": tc.state, "resource": "server", "resource_id": "a", "current_state": "updating"}
				}
				if tries.Load() > tc.fails {
					name = "ours"
				}
				return 200, object("a", name)
			})
			err := c.Rename(t.Context(), "fr-par-1", "a", "pool-1", "ours")
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v", err)
			}
			if tries.Load() != tc.tries {
				t.Errorf("%d tries", tries.Load())
			}
		})
	}
	ctx, stop := context.WithCancel(t.Context())
	c := api(t, func(r *http.Request) (int, any) {
		if r.Method == http.MethodPatch {
			stop()
			return 409, map[string]any{"type": "transient_state", "current_state": "updating"}
		}
		return 200, object("a", "pool-1")
	})
	if err := c.Rename(ctx, "fr-par-1", "a", "pool-1", "ours"); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped, it returned %v", err)
	}
}

// TestElsewhere: where servers are missing, what the key sees in other zones and projects is counted. A key of one
// project is read for its other zones, and an answer that does not come hides nothing else.
func TestElsewhere(t *testing.T) {
	t.Parallel()
	const other = "11111111-2222-4333-8444-555555555555"
	in := func(zone, project string, n int) (out []map[string]any) {
		for i := range n {
			o := object(fmt.Sprintf("%s-%s-%d", zone, project, i), "name")
			o["zone"], o["project_id"] = zone, project
			out = append(out, o)
		}
		return out
	}
	all := append(in("fr-par-1", project, 2), append(in("fr-par-1", other, 3), in("fr-par-3", project, 1)...)...)
	for name, tc := range map[string]struct {
		scoped, broken bool
		want           string
		asked          int64
	}{
		"key of the organisation": {false, false, "elsewhere the API key sees 3 servers in fr-par-1 of project " + other + ", 1 server in fr-par-3", 2},
		"key of the project":      {true, false, "elsewhere the API key sees 1 server in fr-par-3", 3},
		"one zone fails":          {false, true, "elsewhere the API key sees 3 servers in fr-par-1 of project " + other + " (incomplete: zone fr-par-3: ", 7},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int64
			c := api(t, func(r *http.Request) (int, any) {
				asked.Add(1)
				of, zone := r.URL.Query().Get("project_id"), strings.Split(r.URL.Path, "/")[4]
				switch {
				case tc.scoped && of == "":
					return 403, denial(map[string]any{"action": "list", "resource": "server"})
				case tc.broken && zone == "fr-par-3":
					return 500, map[string]any{"type": "internal"}
				}
				var found []map[string]any
				for _, o := range all {
					if o["zone"] == zone && (of == "" || o["project_id"] == of) {
						found = append(found, o)
					}
				}
				return 200, map[string]any{"total_count": len(found), "servers": found}
			}, func(o *scaleway.Options) { o.Known = []string{"fr-par-1", "fr-par-3"} })
			if got := c.Elsewhere(t.Context()).String(); !strings.HasPrefix(got, tc.want) || !tc.broken && got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
			if asked.Load() != tc.asked {
				t.Errorf("%d requests, want %d", asked.Load(), tc.asked)
			}
		})
	}
}
