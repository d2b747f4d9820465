package cloud

import "time"

// Standing is the API's state of a server, besides its name.
type Standing struct {
	Status            string
	DeletionScheduled bool
	DeletableAt       time.Time
}

// Stand changes the API's state of a server, if change accepts the present one.
func (a *API) Stand(id string, change func(present Standing) (Standing, bool)) error {
	return a.Edit(id, func(server *Server) bool {
		next, ok := change(standingOf(*server))
		if ok {
			server.Status, server.DeletionScheduled, server.DeletableAt = next.Status, next.DeletionScheduled, next.DeletableAt
			server.UpdatedAt = after(server.UpdatedAt, a.options.Now())
		}
		return ok
	})
}

func standingOf(s Server) Standing { return Standing{s.Status, s.DeletionScheduled, s.DeletableAt} }
