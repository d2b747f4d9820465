package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// Patient sends requests, reads every answer whole, since a part of one must never be decoded, and repeats the requests
// that are safe to repeat. What was refused for its rate, or was never sent, is; of the others only reads are: whether
// a write was carried out is for the caller to find out.
type Patient struct {
	Next      *http.Client
	Waiting   func(Waiting) // called before a request is sent again, from many goroutines; nil: no call
	Pauses    *Pauses
	RequestID string // the header by which the server names a request
	// Judge completes what is known of an answer. The error is of one that must not be decoded.
	Judge func(*Trail, *http.Response, []byte) error
}

// Waiting is a request that is sent again after a pause.
type Waiting struct {
	Method, Path string
	Why          string // what it waits for
	RequestID    string // of the answer that asked for it; empty: unknown
	Try          int    // how often it was sent, from 1
	For          time.Duration
}

// Trail is what is known of the last request of a call.
type Trail struct {
	Method string
	Path   string
	Sent   bool          // the server may have received it
	Status int           // 0: no answer
	Text   string        // of the status
	ID     string        // what the server calls the request; empty: it does not say
	Kind   string        // the type of an error answer, as the provider defines it
	Said   string        // the message of an error answer
	At     time.Time     // when the server answered, by its clock; zero: it does not say
	Wait   time.Duration // as the answer's headers ask; below 0: they do not

	Limited bool // too many requests
	UsedUp  bool // and none is left until X-Ratelimit-Reset
}

type trailKey struct{}

// Follow returns a context whose requests are noted in the trail.
func Follow(ctx context.Context) (context.Context, *Trail) {
	t := new(Trail)
	return context.WithValue(ctx, trailKey{}, t), t
}

// largest is far above the longest answer: a page of 100 servers has about 200 kB.
const largest = 8 << 20

// Do sends a request until its answer counts. The answer's body is whole.
func (p Patient) Do(r *http.Request) (*http.Response, error) {
	t, ok := r.Context().Value(trailKey{}).(*Trail)
	if !ok {
		t = new(Trail)
	}
	began, waited := time.Now(), time.Duration(0)
	for try := 1; ; try++ {
		again, err := rewound(r, try)
		if err != nil {
			return nil, err
		}
		*t = Trail{Method: r.Method, Path: r.URL.Path}
		resp, err := p.once(again, t)
		why := t.worthRepeating(resp, err)
		if why == "" || r.Context().Err() != nil {
			return resp, err
		}
		pause := p.Pauses.before(try, max(waited, time.Since(began)), t.Wait, t.Limited)
		if deadline, ok := r.Context().Deadline(); pause < 0 || ok && time.Until(deadline) <= pause {
			return resp, err
		}
		if p.Waiting != nil {
			p.Waiting(Waiting{Method: r.Method, Path: r.URL.Path, Why: why, RequestID: t.ID, Try: try, For: pause})
		}
		waited += pause
		if err := p.Pauses.Sleep(r.Context(), pause); err != nil {
			return nil, err
		}
	}
}

// rewound returns the request with a fresh body.
func rewound(r *http.Request, try int) (*http.Request, error) {
	if try == 1 || r.Body == nil || r.Body == http.NoBody {
		return r, nil
	}
	if r.GetBody == nil {
		return nil, errors.New("the request's body cannot be sent twice")
	}
	body, err := r.GetBody()
	if err != nil {
		return nil, fmt.Errorf("read the request's body again: %w", err)
	}
	again := r.Clone(r.Context())
	again.Body = body
	return again, nil
}

// once sends a request and reads its answer.
func (p Patient) once(r *http.Request, t *Trail) (*http.Response, error) {
	ctx, stop := context.WithCancelCause(r.Context())
	defer stop(nil)
	resp, err := p.Next.Do(r.WithContext(ctx))
	if err != nil {
		t.Sent = !neverSent(err)
		return nil, err
	}
	defer resp.Body.Close()
	t.Sent, t.Status, t.Text, t.ID = true, resp.StatusCode, Plain(resp.Status), Plain(resp.Header.Get(p.RequestID))
	t.At, _ = http.ParseTime(resp.Header.Get("Date"))
	t.Limited = resp.StatusCode == http.StatusTooManyRequests
	t.UsedUp = t.Limited
	t.Wait = Asked(resp.Header, t.UsedUp, p.Pauses.Now())
	slow := time.AfterFunc(p.Pauses.Body, func() {
		stop(fmt.Errorf("the answer's body did not arrive within %s", p.Pauses.Body))
	})
	defer slow.Stop()
	body, err := io.ReadAll(io.LimitReader(resp.Body, largest+1))
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	if err != nil {
		return nil, &BrokenAnswer{fmt.Errorf("the answer was interrupted after %d bytes: %w", len(body), err)}
	}
	if len(body) > largest {
		return nil, &StrangeAnswer{Text: fmt.Sprintf("%s with more than %d MB", t.Text, largest>>20)}
	}
	err = p.Judge(t, resp, body)
	t.Wait = Asked(resp.Header, t.UsedUp, p.Pauses.Now())
	if err != nil {
		return nil, err
	}
	return Answer(r, resp.Header, body, resp.StatusCode), nil
}

// Answer returns an answer to a request, with a whole body.
func Answer(r *http.Request, header http.Header, body []byte, code int) *http.Response {
	return &http.Response{StatusCode: code, Status: fmt.Sprintf("%d %s", code, http.StatusText(code)), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Request: r, Header: header, ContentLength: int64(len(body)), Body: io.NopCloser(bytes.NewReader(body))}
}

// neverSent reports whether a request failed before the provider could have received it.
func neverSent(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	return errors.As(err, &op) && op.Op == "dial" || errors.As(err, &dns)
}

// BrokenAnswer is an answer of which a part is missing.
type BrokenAnswer struct{ error }

// Unwrap returns what interrupted it.
func (b *BrokenAnswer) Unwrap() error { return b.error }

// StrangeAnswer is an answer that is not the provider's, or not of the form that it documents. Its text must have no part of
// the body, which may hold passwords.
type StrangeAnswer struct{ Text string }

// Error returns the text.
func (s *StrangeAnswer) Error() string { return s.Text }

// worthRepeating returns why a request is sent again, or "". What was refused for its rate, or was never sent, is safe
// to repeat. Of the others only reads are: whether a write was carried out is for the caller to find out.
func (t *Trail) worthRepeating(resp *http.Response, err error) string {
	read := t.Method == http.MethodGet
	switch {
	case t.Limited:
		return "rate limit"
	case resp != nil:
		if read && t.Status >= 500 && t.Status != http.StatusNotImplemented {
			return fmt.Sprintf("server fault %d", t.Status)
		}
	case permanent(err), t.Status >= 300 && t.Status < 500:
	case !t.Sent:
		return "no connection"
	case read && t.Status == 0:
		return "no answer"
	case read:
		return "incomplete or unexpected answer"
	}
	return ""
}

// Plain is a server's text on one line of limited length, without control characters.
func Plain(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > 300 {
		text = strings.ToValidUTF8(text[:300], "") + "…"
	}
	return text
}
