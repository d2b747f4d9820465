package sandbox

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
)

// accessLog is the file with one line per request. It is opened for each line, so that a person may
// move or empty it while a process runs.
type accessLog struct {
	path string

	mu     sync.Mutex
	failed error
}

// add writes one line in one write call with O_APPEND, so that lines of several processes do not mix.
func (l *accessLog) add(text string) {
	line := time.Now().UTC().Format(time.RFC3339) + " " + text + "\n"
	file, err := os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err == nil {
		_, err = file.WriteString(line)
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.failed == nil {
			l.failed = fmt.Errorf("write the sandbox's access log: %w", err)
		}
	}
}

// close returns the error of the first line that could not be written.
func (l *accessLog) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

func (l *accessLog) ssh(name, event string) {
	l.add("ssh " + oneWord(name) + " " + event)
}

// oneWord quotes a name that would make a line ambiguous.
func oneWord(name string) string {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) || r == '"' }) {
		return strconv.Quote(name)
	}
	return name
}

// handler serves requests with next and logs them with the name of the service.
func (l *accessLog) handler(service string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(&loggedResponse{ResponseWriter: w, log: l, line: service + " " + r.Method + " " + r.URL.RequestURI()}, r)
	})
}

// loggedResponse writes the line before the answer, so that a client with an answer finds its line.
type loggedResponse struct {
	http.ResponseWriter
	log    *accessLog
	line   string
	logged bool
}

// WriteHeader logs the request with its status, then answers.
func (w *loggedResponse) WriteHeader(status int) {
	if !w.logged {
		w.logged = true
		w.log.add(w.line + " " + strconv.Itoa(status))
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write answers, with status 200 if none was set.
func (w *loggedResponse) Write(data []byte) (int, error) {
	if !w.logged {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(data)
}

// Unwrap returns the inner writer, which a watch flushes.
func (w *loggedResponse) Unwrap() http.ResponseWriter { return w.ResponseWriter }
