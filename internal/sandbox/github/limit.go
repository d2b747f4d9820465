package github

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox/store"
)

// window counts the requests of a credential in an hour.
type window struct {
	ends time.Time
	used int
}

// requestsPerHour is the primary limit of an installation.
const requestsPerHour = 5000

// limited counts a request, writes the headers of the primary limit, and answers a request that is over it.
func (a *API) limited(w http.ResponseWriter, r *http.Request, own Settings) bool {
	limit, now := cmp.Or(own.PerHour, requestsPerHour), a.now(own)
	a.mu.Lock()
	key := digestOf(bearer(r))
	if strings.HasPrefix(r.URL.Path, "/app/") || strings.HasSuffix(r.URL.Path, "/installation") {
		key = "app" // each of its tokens is a new one
	}
	at := a.used[key]
	if !now.Before(at.ends) {
		at = window{ends: now.Add(hour)}
	}
	at.used++
	a.used[key] = at
	a.mu.Unlock()
	rate(w.Header(), limit, at)
	if at.used <= limit {
		return false
	}
	(&failure{status: http.StatusForbidden, message: "API rate limit exceeded for installation."}).write(w)
	return true
}

func rate(header http.Header, limit int, at window) {
	header.Set("X-RateLimit-Limit", strconv.Itoa(limit))
	header.Set("X-RateLimit-Remaining", strconv.Itoa(max(0, limit-at.used)))
	header.Set("X-RateLimit-Used", strconv.Itoa(at.used))
	header.Set("X-RateLimit-Reset", strconv.FormatInt(at.ends.Unix(), 10))
	header.Set("X-RateLimit-Resource", "core")
}

// Fault is what happens to the next requests.
type Fault struct {
	Requests int    `json:"requests"`       // how many requests it hits, one after the other
	Only     string `json:"only,omitempty"` // a part of "METHOD /path"; "" = every request
	// Answer is a status such as 502, or limit (the primary limit is used up), secondary (a secondary limit) or lost:
	// the request is done, and the client gets 502. Nothing is done otherwise.
	Answer string `json:"answer"`
	// After is how many seconds a limit lasts; 0 = 1.
	After int `json:"after,omitempty"`
}

// The answers of faults that are not a status.
const (
	faultLimit     = "limit"
	faultSecondary = "secondary"
	faultLost      = "lost"
)

func (f Fault) status() int {
	n, err := strconv.Atoi(f.Answer)
	if err != nil || n < 400 || n > 599 {
		return 0
	}
	return n
}

// Faults returns the faults that are still to come.
func (a *API) Faults() ([]Fault, error) {
	var all []Fault
	if err := store.ReadJSON(a.path(faultsFile), &all); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, f := range all {
		if f.status() == 0 && !slices.Contains([]string{faultLimit, faultSecondary, faultLost}, f.Answer) {
			return nil, fmt.Errorf("%s: answer %q is none of a status from 400 to 599, %s, %s and %s", a.path(faultsFile), f.Answer, faultLimit, faultSecondary, faultLost)
		}
	}
	return all, nil
}

// SetFaults replaces the faults that are still to come.
func (a *API) SetFaults(all ...Fault) error {
	return a.guarded(func() error { return a.putFaults(all) })
}

func (a *API) putFaults(all []Fault) error {
	if len(all) > 0 {
		return store.WriteJSON(a.path(faultsFile), all)
	}
	if err := os.Remove(a.path(faultsFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the faults of the sandbox's GitHub: %w", err)
	}
	return nil
}

// fault returns the fault that hits a request, and counts it.
func (a *API) fault(r *http.Request) (hit *Fault, err error) {
	if _, err := os.Stat(a.path(faultsFile)); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	err = a.guarded(func() error {
		all, err := a.Faults()
		if err != nil {
			return err
		}
		for i, one := range all {
			if one.Requests > 0 && strings.Contains(r.Method+" "+r.URL.Path, one.Only) {
				hit = &one
				all[i].Requests--
				break
			}
		}
		return a.putFaults(slices.DeleteFunc(all, func(f Fault) bool { return f.Requests <= 0 }))
	})
	return hit, err
}

// failing answers a request that a fault hits. It reports whether there was one.
func (a *API) failing(w http.ResponseWriter, r *http.Request, own Settings) bool {
	hit, err := a.fault(r)
	switch {
	case err != nil:
		internal(err).write(w)
	case hit == nil:
		return false
	case hit.status() >= 500:
		gateway(w, hit.status())
	case hit.status() != 0:
		(&failure{status: hit.status(), message: http.StatusText(hit.status())}).write(w)
	case hit.Answer == faultLost:
		a.mux.ServeHTTP(&discarded{header: http.Header{}}, r)
		gateway(w, http.StatusBadGateway)
	default:
		a.limitNow(w, hit, own)
	}
	return true
}

// gateway answers in HTML, as what is in front of GitHub does.
func gateway(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", "text/html")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<html><body><h1>%d %s</h1></body></html>\n", status, http.StatusText(status))
}

func (a *API) limitNow(w http.ResponseWriter, hit *Fault, own Settings) {
	after := cmp.Or(hit.After, 1)
	if hit.Answer == faultSecondary {
		w.Header().Set("Retry-After", strconv.Itoa(after))
		(&failure{status: http.StatusForbidden, message: "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."}).write(w)
		return
	}
	limit := cmp.Or(own.PerHour, requestsPerHour)
	rate(w.Header(), limit, window{ends: a.now(own).Add(time.Duration(after) * time.Second), used: limit})
	(&failure{status: http.StatusTooManyRequests, message: "API rate limit exceeded for installation."}).write(w)
}

// discarded is an answer that the client never sees.
type discarded struct {
	header http.Header
	body   bytes.Buffer
}

// Header returns the answer's header.
func (d *discarded) Header() http.Header { return d.header }

// WriteHeader does nothing.
func (d *discarded) WriteHeader(int) {}

// Write keeps a part of the body.
func (d *discarded) Write(p []byte) (int, error) { return d.body.Write(p) }
