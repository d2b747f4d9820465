package scaleway_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/providers/scaleway"
)

const (
	access  = "SCWXXXXXXXXXXXXXXXXX"
	key     = "11111111-1111-1111-1111-111111111111"
	project = "5d6e8f70-1b2c-4d3e-8f90-a1b2c3d4e5f6"
)

// TestCredentials takes them where scw's users have them, and says what to do
// where there are none. A broken file is never skipped.
func TestCredentials(t *testing.T) {
	for _, c := range []struct {
		name, file, access, project string
		problem                     string
	}{
		{"none", "", "", project, "SCW_ACCESS_KEY"},
		{"variables", "", access, project, ""},
		{"file", "access_key: " + access + "\nsecret_key: " + key + "\n", "", project, ""},
		{"broken file", "access_key: [\n", access, project, "config.yaml"},
		{"malformed key", "", "nonsense", project, "run scw init"},
		{"no project", "", access, "", "set project_id of the environment"},
		{"project of the file", "access_key: " + access + "\nsecret_key: " + key + "\ndefault_project_id: " + project + "\n", "", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "config.yaml")
			if c.file != "" {
				must(t, os.WriteFile(path, []byte(c.file), 0o600))
			}
			for _, name := range []string{"SCW_PROFILE", "SCW_DEFAULT_PROJECT_ID", "SCW_ACCESS_KEY", "SCW_SECRET_KEY", "SCW_API_URL"} {
				t.Setenv(name, "") // put back afterwards
				must(t, os.Unsetenv(name))
			}
			t.Setenv("SCW_CONFIG_PATH", path)
			if c.access != "" {
				t.Setenv("SCW_ACCESS_KEY", c.access)
				t.Setenv("SCW_SECRET_KEY", key)
			}
			_, err := scaleway.New(scaleway.Options{ProjectID: c.project, Zones: []string{"fr-par-1"}, HTTP: http.DefaultClient})
			switch {
			case c.problem == "" && err != nil:
				t.Error(err)
			case c.problem != "" && (err == nil || !strings.Contains(err.Error(), c.problem)):
				t.Errorf("error %v lacks %q", err, c.problem)
			}
			if err != nil && strings.Contains(err.Error(), key) {
				t.Error("the error holds the secret key")
			}
		})
	}
}

// client is one of a project in a zone, with what a test changes.
func client(t *testing.T, change func(*scaleway.Options)) *scaleway.Client {
	t.Helper()
	o := scaleway.Options{ProjectID: project, Zones: []string{"fr-par-1"}, URL: "https://api.example", AccessKey: access, SecretKey: key}
	change(&o)
	c, err := scaleway.New(o)
	must(t, err)
	return c
}

// api serves what the handlers say, in JSON.
func api(t *testing.T, handle func(r *http.Request) (int, any), change ...func(*scaleway.Options)) *scaleway.Client {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		code, body := handle(r)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Request-Id", "4f2c-of-"+r.Method)
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(body)
	}))
	t.Cleanup(s.Close)
	c := client(t, func(o *scaleway.Options) {
		o.HTTP, o.URL = s.Client(), s.URL
		for _, f := range change {
			f(o)
		}
	})
	c.Hurry()
	return c
}

func twoZones(o *scaleway.Options) { o.Zones = append(o.Zones, "fr-par-3") }

func object(id, name string) map[string]any {
	return map[string]any{"id": id, "name": name, "type": "M2-L", "zone": "fr-par-1", "status": "ready", "delivered": true,
		"ip": "198.51.100.1", "os": map[string]any{"family": "Tahoe"}}
}

// TestListIsWholeOrAnError never gives the servers of one zone where another
// could not be read: a part would look like lost servers.
func TestListIsWholeOrAnError(t *testing.T) {
	t.Parallel()
	c := api(t, func(r *http.Request) (int, any) {
		if strings.Contains(r.URL.Path, "fr-par-3") {
			return 403, map[string]any{"type": "permissions_denied", "message": "insufficient permissions", "details": []any{}}
		}
		return 200, map[string]any{"total_count": 1, "servers": []any{object("a", "one")}}
	}, twoZones)
	list, err := c.List(t.Context())
	if err == nil || list != nil || !strings.Contains(err.Error(), "fr-par-3") || !strings.Contains(err.Error(), "AppleSiliconFullAccess") {
		t.Errorf("%v, %v", list, err)
	}
}

// TestListOnce lists a server once that moved between pages while they were
// read, and sends the project with every request.
func TestListOnce(t *testing.T) {
	t.Parallel()
	c := api(t, func(r *http.Request) (int, any) {
		if r.URL.Path == "/metadata" {
			return 200, map[string]any{"platform": "x", "partition": "y", "domain": "scw"}
		}
		if r.URL.Query().Get("project_id") != project {
			return 403, map[string]any{"type": "permissions_denied"}
		}
		return 200, map[string]any{"total_count": 2, "servers": []any{object("b", "two"), object("a", "one")}}
	}, twoZones)
	list, err := c.List(t.Context())
	must(t, err)
	if len(list) != 2 || list[0].Name != "one" || list[1].Name != "two" || list[0].OSFamily != "Tahoe" || !list[0].Usable() {
		t.Errorf("%+v", list)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
