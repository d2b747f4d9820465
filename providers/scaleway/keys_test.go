package scaleway_test

import (
	"net/http"
	"strings"
	"testing"
)

const (
	fleetKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8g"
	otherKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8g"
)

// keyring serves the SSH keys of a project as the provider does: without the project id it denies the list.
type keyring struct {
	keys    []map[string]any
	created int
	broken  int // status of the answer to a POST that is carried out nevertheless; 0: none
}

func (k *keyring) serve(r *http.Request) (int, any) {
	switch r.Method {
	case http.MethodPost:
		k.created++
		body := record(r).Body
		body["id"] = "new"
		k.keys = append(k.keys, body)
		if k.broken != 0 {
			return k.broken, map[string]any{"type": "internal"}
		}
		return 200, body
	case http.MethodDelete:
		for i, key := range k.keys {
			if strings.HasSuffix(r.URL.Path, "/"+key["id"].(string)) {
				k.keys = append(k.keys[:i], k.keys[i+1:]...)
				return 204, nil
			}
		}
		return 403, denial()
	}
	if r.URL.Query().Get("project_id") != project {
		return 403, denial(map[string]any{"action": "list", "resource": "ssh_key"})
	}
	return 200, map[string]any{"total_count": len(k.keys), "ssh_keys": k.keys}
}

// TestRegisterKey: one key is registered once in a project, whatever its comment and name are. A disabled key is an error, and an
// answer that got lost is looked up.
func TestRegisterKey(t *testing.T) {
	t.Parallel()
	stored := func(public string, disabled bool) []map[string]any {
		return []map[string]any{{"id": "old", "name": "fleet", "public_key": public + " someone@else", "project_id": project, "disabled": disabled}}
	}
	for name, tc := range map[string]struct {
		ring   keyring
		public string
		id     string
		posts  int
		want   string
	}{
		"new":             {keyring{}, fleetKey + " me@here", "new", 1, ""},
		"registered":      {keyring{keys: stored(fleetKey, false)}, fleetKey + " me@here", "old", 0, ""},
		"same name only":  {keyring{keys: stored(otherKey, false)}, fleetKey, "new", 1, ""},
		"disabled":        {keyring{keys: stored(fleetKey, true)}, fleetKey, "", 0, "is disabled"},
		"answer got lost": {keyring{broken: 502}, fleetKey, "new", 1, ""},
		"another project": {keyring{keys: []map[string]any{{"id": "theirs", "name": "fleet", "public_key": fleetKey, "project_id": "theirs"}}}, fleetKey, "new", 1, ""},
		"no key":          {keyring{}, "ssh-ed25519 !!!", "", 0, "not a public key"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := api(t, tc.ring.serve).RegisterKey(t.Context(), "fleet", tc.public)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v", err)
			}
			if got.ID != tc.id || tc.ring.created != tc.posts || err == nil && got.Public != fleetKey {
				t.Errorf("%+v after %d requests", got, tc.ring.created)
			}
		})
	}
}

// TestRemoveKey: a removed key is gone; only the list decides whether it was gone before.
func TestRemoveKey(t *testing.T) {
	t.Parallel()
	ring := keyring{keys: []map[string]any{{"id": "old", "public_key": fleetKey}}}
	c := api(t, ring.serve)
	for range 2 {
		if err := c.RemoveKey(t.Context(), "old"); err != nil || len(ring.keys) != 0 {
			t.Errorf("%d keys left, error %v", len(ring.keys), err)
		}
	}
	denied := api(t, func(*http.Request) (int, any) { return 403, denial() })
	if err := denied.RemoveKey(t.Context(), "old"); err == nil || !strings.Contains(err.Error(), "SSHKeysFullAccess") {
		t.Errorf("error %v", err)
	}
	if keys, err := denied.Keys(t.Context()); err == nil || keys != nil || !strings.Contains(err.Error(), project) {
		t.Errorf("%v, error %v", keys, err)
	}
}
