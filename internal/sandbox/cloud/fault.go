package cloud

import (
	"bytes"
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

// faultsFile holds the faults that are still to come, one list. Without it there are none.
const faultsFile = "faults.json"

// Fault is what happens to the next requests instead of, or after, what they ask for.
type Fault struct {
	Requests int    `json:"requests"`       // how many requests it hits, one after the other
	Only     string `json:"only,omitempty"` // a part of "METHOD /path"; "" = every request
	// Answer is a status such as 429 or 503: nothing is done then. "lost": it is done, and the client gets
	// 502. "cut": it is done, and the answer ends in the middle. "slow": it is done, and the second half of
	// the answer comes after Pause.
	Answer     string `json:"answer"`
	RetryAfter string `json:"retry_after,omitempty"` // header Retry-After of a status
	Pause      Span   `json:"pause,omitempty"`       // "" = 1s
}

// status returns the HTTP status of a fault that does nothing else.
func (f Fault) status() int {
	n, err := strconv.Atoi(f.Answer)
	if err != nil || n < 400 || n > 599 {
		return 0
	}
	return n
}

func (f Fault) check() error {
	if f.status() == 0 && !slices.Contains([]string{"lost", "cut", "slow"}, f.Answer) {
		return fmt.Errorf("answer %q is none of a status from 400 to 599, lost, cut and slow", f.Answer)
	}
	_, err := f.Pause.or(0)
	return err
}

// Fail adds a fault to those that are still to come.
func (a *API) Fail(with Fault) error {
	return a.editFaults(func(all []Fault) []Fault { return append(all, with) })
}

// Recover removes all faults that are still to come.
func (a *API) Recover() error { return a.editFaults(func([]Fault) []Fault { return nil }) }

// Faults returns the faults that are still to come.
func (a *API) Faults() ([]Fault, error) {
	var all []Fault
	if err := store.ReadJSON(a.faults, &all); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, one := range all {
		if err := one.check(); err != nil {
			return nil, fmt.Errorf("%s: %w", a.faults, err)
		}
	}
	return all, nil
}

func (a *API) editFaults(change func([]Fault) []Fault) error {
	unlock, err := a.lock.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	all, err := a.Faults()
	if err != nil {
		return err
	}
	if all = change(all); len(all) > 0 {
		return store.WriteJSON(a.faults, all)
	}
	if err := os.Remove(a.faults); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the sandbox's faults: %w", err)
	}
	return nil
}

// fault returns the fault that hits a request, and counts it.
func (a *API) fault(r *http.Request) (hit Fault, found bool, err error) {
	if _, err := os.Stat(a.faults); errors.Is(err, fs.ErrNotExist) {
		return Fault{}, false, nil
	}
	err = a.editFaults(func(all []Fault) []Fault {
		for i, one := range all {
			if one.Requests > 0 && strings.Contains(r.Method+" "+r.URL.Path, one.Only) {
				hit, found = one, true
				all[i].Requests--
				break
			}
		}
		return slices.DeleteFunc(all, func(f Fault) bool { return f.Requests <= 0 })
	})
	return hit, found, err
}

// failing answers a request that a fault hits. It reports whether there was one.
func (a *API) failing(w http.ResponseWriter, r *http.Request) bool {
	if r.URL.Path == "/metadata" {
		return false // the vendor's client ignores its failure
	}
	hit, found, err := a.fault(r)
	if err != nil {
		failed := internal(err)
		reply(w, failed.status, failed.body)
		return true
	}
	if !found {
		return false
	}
	if status := hit.status(); status != 0 {
		refuse(w, status, hit.RetryAfter)
		return true
	}
	answer := &recorder{header: http.Header{}, status: http.StatusOK}
	a.mux.ServeHTTP(answer, r)
	switch {
	case hit.Answer == "lost", answer.body.Len() == 0:
		refuse(w, http.StatusBadGateway, "")
	case hit.Answer == "cut":
		half(w, answer)
	default:
		half(w, answer)
		pause, _ := hit.Pause.or(time.Second) // checked when read
		finish(w, r, answer, pause)
	}
	return true
}

// refuse answers with a status and nothing else. The gateway sends its errors as HTML.
func refuse(w http.ResponseWriter, status int, retryAfter string) {
	header := w.Header()
	if retryAfter != "" {
		header.Set("Retry-After", retryAfter)
	}
	if status == http.StatusTooManyRequests {
		header.Set("X-Ratelimit-Remaining", "0")
		failed := tooManyRequests(0)
		reply(w, failed.status, failed.body)
		return
	}
	if status == http.StatusInternalServerError {
		reply(w, status, typedError{Type: "internal", Message: "internal error"})
		return
	}
	header.Set("Content-Type", "text/html")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<html><body><h1>%d %s</h1></body></html>\n", status, http.StatusText(status))
}

// half sends the first half of an answer, and the length of all of it.
func half(w http.ResponseWriter, answer *recorder) {
	body := answer.body.Bytes()
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(answer.status)
	_, _ = w.Write(body[:len(body)/2])
	_ = http.NewResponseController(w).Flush() // a client that left is ignored
}

// finish sends the second half of an answer after a pause.
func finish(w http.ResponseWriter, r *http.Request, answer *recorder, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
		return
	}
	body := answer.body.Bytes()
	_, _ = w.Write(body[len(body)/2:])
}

// recorder keeps an answer.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header returns the answer's header.
func (r *recorder) Header() http.Header { return r.header }

// WriteHeader keeps the status.
func (r *recorder) WriteHeader(status int) { r.status = status }

// Write keeps a part of the body.
func (r *recorder) Write(p []byte) (int, error) { return r.body.Write(p) }
