package cloud

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
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
	// Reinstall and Reboot may be "denied".
	Reinstall string `json:"reinstall"`
	Reboot    string `json:"reboot"`
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
		{"scope", own.Scope, []string{"", "project"}},
	} {
		if !slices.Contains(field.known, field.value) {
			return own, internal(fmt.Errorf("%s: %s is %q; it can be one of %q", a.rights, field.name, field.value, field.known[1:]))
		}
	}
	return own, nil
}

// mayList answers a list of a project's servers, or of all without a project, if a right is missing.
func (a *API) mayList(project string) *failure {
	own, failed := a.lacking()
	switch {
	case failed != nil:
		return failed
	case own.List == "denied", own.Scope == "project" && project == "", project != "" && project != a.options.ProjectID:
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
	return server, failed
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
