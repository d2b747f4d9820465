package cloud

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/macfleet/macfleet/internal/sandbox/store"
)

// rights are the rights that the key lacks. A person creates the file; without it, the key has all
// rights in its organization.
type rights struct {
	// List, Read and Update may be "denied": lists, single servers and changes. Update may also be
	// "name-denied": only a new name is refused, as if the right was removed between two requests.
	List   string `json:"list"`
	Read   string `json:"read"`
	Update string `json:"update"`
	// Reinstall, Reboot and Delete may be "denied": operations on servers.
	Reinstall string `json:"reinstall"`
	Reboot    string `json:"reboot"`
	Delete    string `json:"delete"`
	// SSHKeys may be "denied" or "read-only": the SSH keys of the project.
	SSHKeys string `json:"ssh_keys"`
	// Account may be "denied": the API key itself and the quotas.
	Account string `json:"account"`
	// Key may be "revoked" or "expired": every request is refused.
	Key string `json:"key"`
	// Project is the project that the key may see; "" = the world's.
	Project string `json:"project"`
	// Passwords may be "sealed": the key reads servers without them.
	Passwords string `json:"passwords"`
	// Scope may be "project": the key belongs to one project and must name it in a list.
	Scope string `json:"scope"`
}

// own reads the rights of the key.
func (a *API) lacking() (rights, *failure) {
	var own rights
	if err := store.ReadJSON(a.rights, &own); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return own, internal(err)
	}
	for _, field := range []struct {
		name, value string
		known       []string
	}{
		{"list", own.List, []string{"", "denied"}}, {"read", own.Read, []string{"", "denied"}},
		{"update", own.Update, []string{"", "denied", "name-denied"}}, {"passwords", own.Passwords, []string{"", "sealed"}},
		{"reinstall", own.Reinstall, []string{"", "denied"}}, {"reboot", own.Reboot, []string{"", "denied"}},
		{"delete", own.Delete, []string{"", "denied"}},
		{"ssh_keys", own.SSHKeys, []string{"", "denied", "read-only"}}, {"account", own.Account, []string{"", "denied"}},
		{"key", own.Key, []string{"", "revoked", "expired"}},
		{"scope", own.Scope, []string{"", "project"}},
	} {
		if !slices.Contains(field.known, field.value) {
			return own, internal(fmt.Errorf("%s: %s is %q; it can be one of %q", a.rights, field.name, field.value, field.known[1:]))
		}
	}
	return own, nil
}

// project returns the project that the key may see.
func (a *API) project(own rights) string { return cmp.Or(own.Project, a.options.ProjectID) }

// Rights changes the rights that the key lacks: the fields of rights.json.
func (a *API) Rights(change func(lacking map[string]string)) error {
	unlock, err := a.lock.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	fields := map[string]string{}
	if err := store.ReadJSON(a.rights, &fields); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	change(fields)
	maps.DeleteFunc(fields, func(_, value string) bool { return value == "" })
	return store.WriteJSON(a.rights, fields)
}

// mayList answers a list of a project's servers, or of all without a project, if a right is missing.
func (a *API) mayList(project string) *failure {
	own, failed := a.lacking()
	switch {
	case failed != nil:
		return failed
	case own.List == "denied", own.Scope == "project" && project == "", project != "" && project != a.project(own):
		return denied("list")
	}
	return nil
}

// mayRead answers a read of one server if a right is missing.
func (a *API) mayRead() *failure {
	own, failed := a.lacking()
	if failed == nil && own.Read == "denied" {
		return denied("read")
	}
	return failed
}

// disclosed returns a server as the key may see it.
func (a *API) disclosed(server Server) (Server, *failure) {
	own, failed := a.lacking()
	if failed == nil && own.Passwords == "sealed" {
		return server.sealed(), nil
	}
	settings, unread := a.settings()
	if failed = cmp.Or(failed, unread); failed != nil || settings.Passwords == "" {
		return server, failed
	}
	shown, _ := settings.Passwords.or(0) // checked when read
	since := server.CreatedAt
	if server.Life.Installed.After(since) {
		since = server.Life.Installed
	}
	if !a.options.Now().Before(since.Add(shown)) {
		return server.concealed(), nil
	}
	return server, nil
}

// refused answers an update if a right is missing, before anything changes.
func (a *API) refused(fields map[string]json.RawMessage) *failure {
	own, failed := a.lacking()
	_, named := fields["name"]
	switch {
	case failed != nil:
		return failed
	case own.Update == "denied", own.Update == "name-denied" && named:
		return denied("write")
	}
	return nil
}
