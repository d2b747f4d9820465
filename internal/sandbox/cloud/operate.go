package cloud

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// operable returns the server of a request that starts an operation, if the key and the server's state
// allow it.
func (a *API) operable(r *http.Request, right func(rights) string) (Server, *failure) {
	server, failed := a.find(r)
	if failed != nil {
		return Server{}, failed
	}
	own, failed := a.lacking()
	switch {
	case failed != nil:
		return Server{}, failed
	case own.Update == "denied", right(own) == "denied":
		return Server{}, denied("write")
	}
	return server, server.inWork()
}

// reinstallServer wipes a server. Without a system it gets the present default of its type, whatever
// it had before: that is how servers leave the family that their fleet needs.
func (a *API) reinstallServer(r *http.Request) (any, *failure) {
	server, failed := a.operable(r, func(own rights) string { return own.Reinstall })
	if failed != nil {
		return nil, failed
	}
	wanted, failed := reinstallation(r)
	if failed != nil {
		return nil, failed
	}
	system, failed := a.systemFor(server, wanted.OSID)
	if failed != nil {
		return nil, failed
	}
	lasts, failed := a.lasts(func(s Settings) Span { return s.Reinstall }, 3*time.Second)
	if failed != nil {
		return nil, failed
	}
	server.KextEnabled = wanted.EnableKext
	keys, failed := a.keys()
	if failed != nil {
		return nil, failed
	}
	server.install(system, keys, a.options.Now())
	server.begin(reinstalling, a.options.Now(), lasts)
	if own, failed := a.settings(); failed != nil {
		return nil, failed
	} else if server.Life.Fails = own.FailInstalls > 0; server.Life.Fails {
		if err := a.set(func(own *Settings) { own.FailInstalls-- }); err != nil {
			return nil, internal(err)
		}
	}
	if err := a.state.put(server); err != nil {
		return nil, internal(err)
	}
	return started{server}, nil
}

// reinstallRequest is the body of a reinstallation.
type reinstallRequest struct {
	OSID       string
	EnableKext bool
}

func reinstallation(r *http.Request) (wanted reinstallRequest, failed *failure) {
	fields, failed := readBody(r)
	if failed != nil {
		return wanted, failed
	}
	for name, value := range fields {
		switch name {
		case "os_id":
			failed = decode(name, value, &wanted.OSID)
		case "enable_kext":
			failed = decode(name, value, &wanted.EnableKext)
		default:
			failed = invalidArgument(name, "unknown", "a reinstallation has no such field")
		}
		if failed != nil {
			return wanted, failed
		}
	}
	return wanted, nil
}

// systemFor returns the system that a server gets: the one with an id, or the default of its type.
func (a *API) systemFor(server Server, id string) (*OS, *failure) {
	own, failed := a.settings()
	if failed != nil {
		return nil, failed
	}
	all, name := own.systems(server.Zone), own.defaultOS(server.Type)
	i := slices.IndexFunc(all, func(os OS) bool { return os.ID == id || id == "" && os.Name == name })
	if i < 0 {
		return nil, invalidArgument("os_id", "constraint", fmt.Sprintf("the catalogue has no operating system %q", id))
	}
	os := all[i]
	if !slices.ContainsFunc(os.SupportedServerTypes, func(s SupportedOn) bool { return s.ServerType == server.Type }) {
		return nil, invalidArgument("os_id", "constraint", fmt.Sprintf("%s does not run on %s", os.Name, server.Type))
	}
	if id != "" && server.OS != nil && server.OS.Family != os.Family {
		return nil, invalidArgument("os_id", "constraint",
			fmt.Sprintf("a server with %s cannot be reinstalled with %s", server.OS.Family, os.Family))
	}
	os.SupportedServerTypes = []SupportedOn{}
	return &os, nil
}

// install records an installation: a new password, the system, and the keys of the project.
func (s *Server) install(system *OS, keys []string, now time.Time) {
	s.OS = system
	s.Life.Installs++
	s.Life.Keys = keys
	s.Life.Installed = now.UTC()
	s.Life.Password = newPassword()
	s.VncPort = 59010 + uint32(s.Life.Installs)%10
	s.SudoPassword = s.Life.Password
	s.VncURL = (&url.URL{Scheme: "vnc", User: url.UserPassword(s.SSHUsername, s.SudoPassword), Host: fmt.Sprintf("%s:%d", s.IP, s.VncPort)}).String()
}

// newPassword returns a random password, as long as the recorded ones.
func newPassword() string { return rand.Text()[:14] }

func (a *API) rebootServer(r *http.Request) (any, *failure) {
	server, failed := a.operable(r, func(own rights) string { return own.Reboot })
	if failed != nil {
		return nil, failed
	}
	lasts, failed := a.lasts(func(s Settings) Span { return s.Reboot }, time.Second)
	if failed != nil {
		return nil, failed
	}
	server.Life.Boots++
	if server.Life.Keys, failed = a.keys(); failed != nil {
		return nil, failed
	}
	server.begin(rebooting, a.options.Now(), lasts)
	if err := a.state.put(server); err != nil {
		return nil, internal(err)
	}
	return started{server}, nil
}

// deleteServer removes a server at once, but not before its lease ends.
func (a *API) deleteServer(r *http.Request) (any, *failure) {
	server, failed := a.find(r)
	if failed == nil {
		failed = server.inWork()
	}
	if failed != nil {
		return nil, failed
	}
	own, failed := a.lacking()
	switch {
	case failed != nil:
		return nil, failed
	case own.Delete == "denied", own.Update == "denied":
		return nil, denied("delete")
	}
	if a.options.Now().Before(server.DeletableAt) {
		return nil, preconditionFailed("the server cannot be deleted before " + server.DeletableAt.UTC().Format(time.RFC3339))
	}
	if err := a.state.remove(server); err != nil {
		return nil, internal(err)
	}
	return nil, nil
}
