package cloud

import (
	"slices"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox/store"
)

// Life is what the provider does and did to a server. It is in the server's file and in no answer.
type Life struct {
	Doing string    `json:"doing,omitempty"` // the status while it lasts, such as reinstalling; "" = nothing
	Until time.Time `json:"until,omitzero"`  // when it ends
	Fails bool      `json:"fails,omitempty"` // it ends with the status error

	Installed time.Time `json:"installed,omitzero"` // the last of these
	Installs  int       `json:"installs,omitempty"` // how often macOS was reinstalled, or installed for a new server
	Boots     int       `json:"boots,omitempty"`    // how often the provider restarted the Mac
	Password  string    `json:"password,omitempty"` // of the login user since the last installation
	Keys      []string  `json:"keys,omitempty"`     // authorized keys since the last installation or restart
}

// entry is the content of a server's file.
type entry struct {
	Server
	Life *Life `json:"life,omitempty"`
}

func entryOf(server Server) entry {
	e := entry{Server: server}
	if life := server.Life; life.Doing != "" || life.Installs > 0 || life.Boots > 0 {
		e.Life = &life
	}
	return e
}

// ReadServer reads a server's file.
func ReadServer(path string) (Server, error) {
	var e entry
	if err := store.ReadJSON(path, &e); err != nil {
		return Server{}, err
	}
	if e.Life != nil {
		e.Server.Life = *e.Life
	}
	return e.Server, nil
}

// Statuses of a server while the provider works on it.
const (
	starting     = "starting"
	rebooting    = "rebooting"
	reinstalling = "reinstalling"
)

// begin records that the provider works on a server for a while.
func (s *Server) begin(status string, now time.Time, lasts time.Duration) {
	s.Status, s.UpdatedAt = status, after(s.UpdatedAt, now)
	s.Life.Doing, s.Life.Until = status, now.UTC().Add(lasts)
}

// finish ends what the provider does. A status that something else has set since then stays.
func (s *Server) finish() {
	if s.Status == s.Life.Doing {
		s.Status, s.Delivered = "ready", true
		if s.Life.Fails {
			s.Status = "error"
		}
		s.UpdatedAt = after(s.UpdatedAt, s.Life.Until)
	}
	s.Life.Doing, s.Life.Fails = "", false
}

// inWork returns the refusal of an operation on a server that the provider works on or has locked.
func (s Server) inWork() *failure {
	switch {
	case s.Status == "locked":
		return locked(s)
	case slices.Contains([]string{starting, rebooting, "updating", "locking", "unlocking", reinstalling, "busy"}, s.Status):
		return inTransition(s)
	}
	return nil
}
