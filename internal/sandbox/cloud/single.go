package cloud

import (
	"fmt"
	"net/http"
)

// find returns the server of a request. A deleted server and one of another owner look the same from
// outside: a refusal, as recorded from the real API, not "not found".
func (a *API) find(r *http.Request) (Server, *failure) {
	id := r.PathValue("id")
	if !ValidUUID(id) {
		return Server{}, invalidArgument("server_id", "format", fmt.Sprintf("%q is not a UUID", id))
	}
	server, found, err := a.state.get(id)
	if err != nil {
		return Server{}, internal(err)
	}
	own, failed := a.lacking()
	if failed != nil {
		return Server{}, failed
	}
	if !found || server.Zone != r.PathValue("zone") || server.ProjectID != a.project(own) {
		return Server{}, denied("read")
	}
	return server, nil
}

// getServer is the only call that shows passwords.
func (a *API) getServer(r *http.Request) (any, *failure) {
	server, failed := a.find(r)
	if failed == nil {
		failed = a.mayRead()
	}
	if failed != nil {
		return nil, failed
	}
	server, failed = a.disclosed(server)
	if failed != nil {
		return nil, failed
	}
	return server, nil
}
