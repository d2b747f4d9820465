package cloud

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox/store"
)

// settled is how old a file must be before its content is cached: two writes within one tick of the
// file system's clock look the same.
const settled = 100 * time.Millisecond

// state is the folder of server files. Its methods are called with the API's lock held.
type state struct {
	dir   string
	now   func() time.Time
	gone  func(Server) error // called with the lock held; nil = nothing follows
	cache map[string]cached
}

type cached struct {
	info   fs.FileInfo
	server Server
}

func (s *state) path(id string) string {
	return filepath.Join(s.dir, id+".json")
}

// all returns every server. One broken file fails it: an inventory without that machine would be
// wrong.
func (s *state) all() ([]Server, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("list the sandbox's servers: %w", err)
	}
	servers := make([]Server, 0, len(entries))
	for _, entry := range entries {
		id, ok := strings.CutSuffix(entry.Name(), ".json")
		if !ok || strings.HasPrefix(id, ".") {
			continue
		}
		server, found, err := s.get(id)
		if err != nil {
			return nil, err
		}
		if found {
			servers = append(servers, server)
		}
	}
	return servers, nil
}

// get returns the server with an id, if there is one.
func (s *state) get(id string) (server Server, found bool, err error) {
	info, err := os.Stat(s.path(id))
	if errors.Is(err, fs.ErrNotExist) {
		delete(s.cache, id)
		return Server{}, false, nil
	}
	if err != nil {
		return Server{}, false, fmt.Errorf("read the sandbox's server: %w", err)
	}
	if known, ok := s.cache[id]; ok && os.SameFile(known.info, info) &&
		known.info.ModTime().Equal(info.ModTime()) && known.info.Size() == info.Size() {
		server = known.server
	} else if server, err = s.read(id); err != nil {
		return Server{}, false, err
	} else if time.Since(info.ModTime()) > settled {
		s.cache[id] = cached{info, server}
	}
	if server.DeletionScheduled && !s.now().Before(server.DeletableAt) {
		return Server{}, false, s.remove(server)
	}
	if server.Life.Doing != "" && !s.now().Before(server.Life.Until) {
		server.finish()
		return server, true, s.put(server)
	}
	return server, true, nil
}

func (s *state) read(id string) (Server, error) {
	server, err := ReadServer(s.path(id))
	if err != nil {
		return Server{}, err
	}
	if server.ID != id || !ValidUUID(id) {
		return Server{}, fmt.Errorf("%s: its id is %q; fix: name the file after its id, a UUID", s.path(id), server.ID)
	}
	if !server.IP.IsValid() {
		return Server{}, fmt.Errorf(`%s: "ip" is missing; give the server an address`, s.path(id))
	}
	return server.normal(), nil
}

func (s *state) put(server Server) error {
	delete(s.cache, server.ID)
	return store.WriteJSON(s.path(server.ID), entryOf(server))
}

func (s *state) remove(server Server) error {
	delete(s.cache, server.ID)
	if err := os.Remove(s.path(server.ID)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("delete the sandbox's server: %w", err)
	}
	if s.gone != nil {
		return s.gone(server)
	}
	return nil
}
