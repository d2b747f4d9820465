package cloud

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/macfleet/macfleet/internal/sandbox/store"
)

// keysFile holds the SSH keys of all projects. Without it, the project has the keys of Options.Keys.
const keysFile = "ssh-keys.json"

// SSHKey is a key that the provider puts on the Macs of a project when it installs or restarts them.
type SSHKey struct {
	ID             string    `json:"id"`
	Name           string    `json:"name"`
	PublicKey      string    `json:"public_key"`
	Fingerprint    string    `json:"fingerprint"`
	CreatedAt      time.Time `json:"created_at"`
	UpdatedAt      time.Time `json:"updated_at"`
	OrganizationID string    `json:"organization_id"`
	ProjectID      string    `json:"project_id"`
	Disabled       bool      `json:"disabled"`
}

// sshKeys returns all keys, oldest first.
func (a *API) sshKeys() ([]SSHKey, error) {
	var all []SSHKey
	err := store.ReadJSON(a.keyring, &all)
	if !errors.Is(err, fs.ErrNotExist) {
		return all, err
	}
	for i, line := range a.options.Keys {
		key, err := newKey(fmt.Sprintf("macfleet-sandbox-%d", i+1), line)
		if err != nil {
			return nil, err
		}
		key.ID = derivedUUID("ssh key " + line)
		key.CreatedAt = time.Date(2026, time.March, 2, 9, 0, i, 0, time.UTC)
		key.UpdatedAt, key.ProjectID, key.OrganizationID = key.CreatedAt, a.options.ProjectID, a.options.OrganizationID
		all = append(all, key)
	}
	return all, nil
}

// newKey returns the key of a line in OpenSSH's format.
func newKey(name, line string) (SSHKey, error) {
	public, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
	if err != nil {
		return SSHKey{}, fmt.Errorf("%q is not a public SSH key: %w", line, err)
	}
	return SSHKey{Name: name, PublicKey: strings.TrimSpace(line),
		Fingerprint: fmt.Sprintf("256 MD5:%s %s (%s)", ssh.FingerprintLegacyMD5(public), name, public.Type())}, nil
}

// keys returns the authorized keys that a Mac of the project gets.
func (a *API) keys() ([]string, *failure) {
	all, err := a.sshKeys()
	if err != nil {
		return nil, internal(err)
	}
	lines := []string{}
	for _, key := range all {
		if key.ProjectID == a.options.ProjectID && !key.Disabled {
			lines = append(lines, key.PublicKey)
		}
	}
	return lines, nil
}

// EditKeys changes the SSH keys without the API.
func (a *API) EditKeys(change func([]SSHKey) []SSHKey) error {
	unlock, err := a.lock.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	all, err := a.sshKeys()
	if err != nil {
		return err
	}
	return store.WriteJSON(a.keyring, append([]SSHKey{}, change(all)...))
}

// mayUseKeys answers a request about SSH keys if a right is missing. A key of one project must name the
// project in a list.
func (a *API) mayUseKeys(action, project string) *failure {
	own, failed := a.lacking()
	switch {
	case failed != nil:
		return failed
	case own.SSHKeys == "denied", own.SSHKeys == "read-only" && action != "list" && action != "read",
		own.Scope == "project" && action == "list" && project == "", project != "" && project != a.project(own):
		return deniedFor("ssh_key", action)
	}
	return nil
}

func (a *API) listKeys(r *http.Request) (any, *failure) {
	query := r.URL.Query()
	project, organization, disabled := query.Get("project_id"), query.Get("organization_id"), query.Get("disabled")
	if failed := a.mayUseKeys("list", project); failed != nil {
		return nil, failed
	}
	all, err := a.sshKeys()
	if err != nil {
		return nil, internal(err)
	}
	all = slices.DeleteFunc(all, func(k SSHKey) bool {
		return project != "" && k.ProjectID != project || organization != "" && k.OrganizationID != organization ||
			!strings.Contains(k.Name, query.Get("name")) || disabled != "" && disabled != strconv.FormatBool(k.Disabled)
	})
	if failed := sortKeys(all, query.Get("order_by")); failed != nil {
		return nil, failed
	}
	shown, failed := page(all, query)
	if failed != nil {
		return nil, failed
	}
	return map[string]any{"ssh_keys": shown, "total_count": len(all)}, nil
}

func sortKeys(all []SSHKey, order string) *failure {
	by, descending := strings.CutSuffix(order, "_desc")
	by = strings.TrimSuffix(by, "_asc")
	compare := map[string]func(x, y SSHKey) int{
		"":           func(x, y SSHKey) int { return x.CreatedAt.Compare(y.CreatedAt) },
		"created_at": func(x, y SSHKey) int { return x.CreatedAt.Compare(y.CreatedAt) },
		"updated_at": func(x, y SSHKey) int { return x.UpdatedAt.Compare(y.UpdatedAt) },
		"name":       func(x, y SSHKey) int { return cmp.Compare(x.Name, y.Name) },
	}[by]
	if compare == nil {
		return invalidArgument("order_by", "constraint", fmt.Sprintf("%q is not an order of SSH keys", order))
	}
	slices.SortFunc(all, func(x, y SSHKey) int {
		n := cmp.Or(compare(x, y), cmp.Compare(x.ID, y.ID))
		if descending {
			return -n
		}
		return n
	})
	return nil
}

func (a *API) createKey(r *http.Request) (any, *failure) {
	fields, failed := readBody(r)
	if failed != nil {
		return nil, failed
	}
	var name, line, project string
	for field, into := range map[string]*string{"name": &name, "public_key": &line, "project_id": &project} {
		if value, ok := fields[field]; ok {
			failed = cmp.Or(failed, decode(field, value, into))
		}
		if *into == "" && failed == nil {
			failed = invalidArgument(field, "required", "an SSH key needs it")
		}
	}
	if failed == nil {
		failed = a.mayUseKeys("create", project)
	}
	if failed != nil {
		return nil, failed
	}
	key, err := newKey(name, line)
	if err != nil {
		return nil, invalidArgument("public_key", "format", err.Error())
	}
	now := a.options.Now().UTC().Truncate(time.Microsecond)
	key.ID, key.CreatedAt, key.UpdatedAt, key.ProjectID, key.OrganizationID = requestID(), now, now, project, a.options.OrganizationID
	all, err := a.sshKeys()
	if err == nil {
		err = store.WriteJSON(a.keyring, append(all, key))
	}
	if err != nil {
		return nil, internal(err)
	}
	return key, nil
}

// key returns all keys and the place of the request's one. Unlike a server, a missing key is not found.
func (a *API) key(r *http.Request, action string) ([]SSHKey, int, *failure) {
	own, failed := a.lacking()
	if failed == nil {
		failed = a.mayUseKeys(action, "")
	}
	if failed != nil {
		return nil, 0, failed
	}
	all, err := a.sshKeys()
	if err != nil {
		return nil, 0, internal(err)
	}
	id := r.PathValue("id")
	i := slices.IndexFunc(all, func(k SSHKey) bool { return k.ID == id && k.ProjectID == a.project(own) })
	if i < 0 {
		return nil, 0, notFound("ssh_key", id)
	}
	return all, i, nil
}

func (a *API) getKey(r *http.Request) (any, *failure) {
	all, i, failed := a.key(r, "read")
	if failed != nil {
		return nil, failed
	}
	return all[i], nil
}

func (a *API) updateKey(r *http.Request) (any, *failure) {
	all, i, failed := a.key(r, "write")
	if failed != nil {
		return nil, failed
	}
	fields, failed := readBody(r)
	if failed != nil {
		return nil, failed
	}
	for name, value := range fields {
		switch name {
		case "name":
			failed = decode(name, value, &all[i].Name)
		case "disabled":
			failed = decode(name, value, &all[i].Disabled)
		default:
			failed = invalidArgument(name, "unknown", "an SSH key has no such field that can be changed")
		}
		if failed != nil {
			return nil, failed
		}
	}
	all[i].UpdatedAt = after(all[i].UpdatedAt, a.options.Now())
	if err := store.WriteJSON(a.keyring, all); err != nil {
		return nil, internal(err)
	}
	return all[i], nil
}

func (a *API) deleteKey(r *http.Request) (any, *failure) {
	all, i, failed := a.key(r, "delete")
	if failed != nil {
		return nil, failed
	}
	if err := store.WriteJSON(a.keyring, slices.Delete(all, i, i+1)); err != nil {
		return nil, internal(err)
	}
	return nil, nil
}
