package github

import (
	"cmp"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox/agent"
	"github.com/macfleet/macfleet/internal/sandbox/store"
)

// Mac is the service for the runner on one Mac. It does not use HTTP: only the API's routes are macfleet's.
type Mac struct {
	api *API
	id  string // of the server
}

// For returns the service for the runner on the Mac of a server.
func (a *API) For(serverID string) Mac { return Mac{a, serverID} }

var _ agent.Runners = Mac{}

// scopeOf returns the organization or repository of a web address.
func scopeOf(address string) string {
	at, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return strings.Trim(at.Path, "/")
}

// redeemed checks the token of a runner that registers or removes itself.
func (m Mac) redeemed(address, token, kind string) error {
	own, err := m.api.settings()
	if err != nil {
		return err
	}
	t, ok, err := m.api.redeem(m.api.now(own), token, kind)
	if err != nil {
		return err
	}
	if !ok || !strings.EqualFold(t.Scope, scopeOf(address)) {
		return agent.ErrToken
	}
	return nil
}

// firstID is the id of a world's first runner.
const firstID = 21

// Register makes an entry for a Mac's runner.
func (m Mac) Register(r agent.Registration) (done agent.Registered, err error) {
	a := m.api
	err = a.change(func(s state, now time.Time) error {
		if err := m.redeemed(r.URL, r.Token, kindRegistration); err != nil {
			return err
		}
		own, err := a.settings()
		if err != nil {
			return err
		}
		if ok, err := a.mayRegister(r.Version, now); err != nil || !ok {
			return cmp.Or(err, agent.ErrVersion)
		}
		group, err := own.groupNamed(r.Group)
		if err != nil {
			return err
		}
		entry := Runner{Scope: scopeOf(r.URL), Name: r.Name, Group: group.ID, NoDefault: r.NoDefault, Ephemeral: r.Ephemeral,
			DisableUpdate: r.DisableUpdate, Version: r.Version, Client: clientID(), Key: r.Key, Created: now, Seen: now}
		for _, name := range r.Labels {
			if inLabels(entry.Labels, name) < 0 && inLabels(entry.fixed(), name) < 0 {
				entry.Labels = append(entry.Labels, name)
			}
		}
		if err := a.place(&entry, s, r.Replace, own); err != nil {
			return err
		}
		done = agent.Registered{ID: entry.ID, Client: entry.Client, GroupID: group.ID, Group: group.Name, Second: own.Flow == flowV2,
			ServerURL: "https://pipelinesghubeus1.actions.githubusercontent.com/" + random(48) + "/"}
		return a.put(entry)
	})
	return done, err
}

// place gives a new entry its id: that of the entry of its name, which it replaces, or a new one.
func (a *API) place(entry *Runner, s state, replace bool, own Settings) error {
	for _, r := range s.within(entry.Scope) {
		if !strings.EqualFold(r.Name, entry.Name) {
			continue
		}
		if !replace {
			return agent.ErrTaken
		}
		// Jobs still reach a replaced runner by the labels that it had before.
		entry.Former = slices.Concat(r.Former, r.Labels)
		if own.Replaced != replacedByNew {
			entry.ID = r.ID
			return nil
		}
		if err := a.remove(r.ID); err != nil {
			return err
		}
	}
	entry.ID = max(own.NextID, firstID)
	return a.set(func(s *Settings) { s.NextID = entry.ID + 1 })
}

// clientID returns a new id of credentials.
func clientID() string {
	id := strings.ToLower(random(32))
	return fmt.Sprintf("%s-%s-%s-%s-%s", id[:8], id[8:12], id[12:16], id[16:20], id[20:])
}

// groupNamed returns a group by its name.
func (s Settings) groupNamed(name string) (Group, error) {
	if name == "" {
		name = "Default"
	}
	for _, g := range s.groups() {
		if strings.EqualFold(g.Name, name) {
			return g, nil
		}
	}
	//lint:ignore ST1005 as the runner prints it
	return Group{}, fmt.Errorf("Could not find any self-hosted runner group named %q.", name)
}

// mayRegister reports whether GitHub registers a version.
func (a *API) mayRegister(version string, now time.Time) (bool, error) {
	r, known, err := a.release(version)
	if err != nil {
		return false, err
	}
	return known && !r.Refused && (r.RegistersUntil.IsZero() || now.Before(r.RegistersUntil)), nil
}

// Remove removes an entry by its name.
func (m Mac) Remove(address, token, name string) error {
	return m.api.change(func(s state, _ time.Time) error {
		if err := m.redeemed(address, token, kindRemoval); err != nil {
			return err
		}
		for _, r := range s.within(scopeOf(address)) {
			if strings.EqualFold(r.Name, name) {
				return m.api.remove(r.ID)
			}
		}
		return agent.ErrUnknown
	})
}

// Session answers a listener.
func (m Mac) Session(l agent.Runner, clock time.Time) (verdict agent.Verdict, update string, err error) {
	err = m.api.change(func(s state, now time.Time) error {
		l.ServerID = m.id
		entry, ok := s.entry(l)
		deprecated, newest, err := m.api.standing(l.Version, now)
		switch {
		case err != nil:
			return err
		case !ok:
			verdict = agent.Deleted
		case entry.ClockOff:
			verdict = agent.WrongClock
		case deprecated:
			verdict = agent.Deprecated
		case entry.Conflict, s.taken(entry, l, clock):
			verdict = agent.Conflicts
		case !entry.DisableUpdate && newest != l.Version:
			update = newest
		}
		return nil
	})
	return verdict, update, err
}

// entry returns the entry whose credentials a listener has.
func (s state) entry(l agent.Runner) (Runner, bool) {
	for _, r := range s.runners {
		if r.ID == l.ID && r.Client == l.Client {
			return r, true
		}
	}
	return Runner{}, false
}

// taken reports whether another listener has the session of an entry, or was killed without closing it.
func (s state) taken(r Runner, l agent.Runner, clock time.Time) bool {
	has := func(other agent.Runner) bool { return other.ServerID == l.ServerID && other.SameRun(l) }
	if own, ok := s.session(r); ok {
		return !has(own)
	}
	return clock.Before(r.Left)
}

// standing reports whether a version gets no jobs any more, and the newest one.
func (a *API) standing(version string, now time.Time) (deprecated bool, newest string, err error) {
	all, err := a.releases()
	for _, r := range all {
		if newest == "" && !r.Refused {
			newest = r.Version
		}
		if r.Version == version {
			deprecated = r.Refused || !r.RunsUntil.IsZero() && !now.Before(r.RunsUntil)
		}
	}
	return deprecated, cmp.Or(newest, version), err
}

// Report records the listeners of the Mac. A killed one leaves its session.
func (m Mac) Report(all []agent.Runner) error {
	a := m.api
	return a.change(func(s state, now time.Time) error {
		known, err := a.listenersByServer()
		if err != nil {
			return err
		}
		delete(known, m.id)
		for _, l := range all {
			l.ServerID = m.id
			entry, ok := s.entry(l)
			if l.Runs() {
				known[m.id] = append(known[m.id], l)
				fresh := !slices.ContainsFunc(s.listeners, l.SameRun)
				if ok && l.Listening && (entry.Version != l.Version || fresh && entry.Status != "") {
					entry.Version = l.Version
					if fresh { // GitHub notices a new session, whatever it showed before
						entry.Status = ""
					}
					err = a.put(entry)
				}
			} else if ok && entry.Seen.Before(l.Ended) {
				entry.Seen = l.Ended
				entry.Left = l.Left
				err = a.put(entry)
			}
			if err != nil {
				return err
			}
		}
		if len(known) == 0 {
			if err := os.Remove(a.path(listenersFile)); !os.IsNotExist(err) {
				return err
			}
			return nil
		}
		return store.WriteJSON(a.path(listenersFile), known)
	})
}
