package scaleway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path"
	"strings"
	"time"
)

// doer sends the SDK's requests, and repeats those that are safe to repeat. It answers GET /metadata itself: the SDK
// asks that once per client, without a context and without a lock, only to write its own name into servers. Unanswered,
// it would hold every call for minutes.
type doer struct {
	next    *http.Client
	waiting func(Waiting) // nil: no call
	pauses  *pauses
}

// metadata is what the real API answers.
const metadata = `{"platform":"scaleway","partition":"scw","domain":"scw"}`

// largest is far above the longest answer: a page of 100 servers has about 200 kB.
const largest = 8 << 20

// Do sends a request until its answer counts, and notes what is known of the answer. The body of an answer is read
// whole: a part of it is never decoded.
func (d doer) Do(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/metadata") {
		return answer(r, http.Header{"Content-Type": {"application/json"}}, []byte(metadata)), nil
	}
	t, ok := r.Context().Value(trailKey{}).(*trail)
	if !ok {
		t = new(trail)
	}
	began, waited := time.Now(), time.Duration(0)
	for try := 1; ; try++ {
		again, err := rewound(r, try)
		if err != nil {
			return nil, err
		}
		*t = trail{method: r.Method, path: r.URL.Path}
		resp, err := d.once(again, t)
		why := t.worthRepeating(resp, err)
		if why == "" || r.Context().Err() != nil {
			return resp, err
		}
		pause := d.pauses.before(try, max(waited, time.Since(began)), t.wait, t.limited)
		if deadline, ok := r.Context().Deadline(); pause < 0 || ok && time.Until(deadline) <= pause {
			return resp, err
		}
		if d.waiting != nil {
			d.waiting(Waiting{Method: r.Method, Path: r.URL.Path, Why: why, RequestID: t.id, Try: try, For: pause})
		}
		waited += pause
		if err := d.pauses.sleep(r.Context(), pause); err != nil {
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
func (d doer) once(r *http.Request, t *trail) (*http.Response, error) {
	ctx, stop := context.WithCancelCause(r.Context())
	defer stop(nil)
	resp, err := d.next.Do(r.WithContext(ctx))
	if err != nil {
		t.sent = !neverSent(err)
		return nil, err
	}
	defer resp.Body.Close()
	t.sent, t.status, t.text, t.id = true, resp.StatusCode, plain(resp.Status), plain(resp.Header.Get("X-Request-Id"))
	t.limited = resp.StatusCode == http.StatusTooManyRequests
	t.wait = asked(resp.Header, t.limited, d.pauses.now())
	slow := time.AfterFunc(d.pauses.body, func() {
		stop(fmt.Errorf("the answer's body did not arrive within %s", d.pauses.body))
	})
	defer slow.Stop()
	body, err := io.ReadAll(io.LimitReader(resp.Body, largest+1))
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	if err != nil {
		return nil, &brokenAnswer{fmt.Errorf("the answer was interrupted after %d bytes: %w", len(body), err)}
	}
	if err := t.judge(resp, body); err != nil {
		return nil, err
	}
	return answer(r, resp.Header, body, resp.StatusCode), nil
}

// answer returns an answer with a whole body.
func answer(r *http.Request, header http.Header, body []byte, status ...int) *http.Response {
	code := http.StatusOK
	if len(status) > 0 {
		code = status[0]
	}
	return &http.Response{StatusCode: code, Status: fmt.Sprintf("%d %s", code, http.StatusText(code)), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Request: r, Header: header, ContentLength: int64(len(body)), Body: io.NopCloser(bytes.NewReader(body))}
}

// neverSent reports whether a request failed before the provider could have received it.
func neverSent(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	return errors.As(err, &op) && op.Op == "dial" || errors.As(err, &dns)
}

// brokenAnswer is an answer of which a part is missing.
type brokenAnswer struct{ error }

func (b *brokenAnswer) Unwrap() error { return b.error }

// strangeAnswer is an answer that is not the provider's, or not of the form that it documents. Its text has no part of
// the body, which may hold passwords.
type strangeAnswer struct{ text string }

func (s *strangeAnswer) Error() string { return s.text }

// trail is what is known of the last request of a call.
type trail struct {
	method string
	path   string
	sent   bool // the provider may have received it
	status int  // 0: no answer
	text   string
	id     string
	kind   string        // the type of an error answer
	wait   time.Duration // as the answer's headers ask; below 0: they do not

	limited bool // too many requests
}

type trailKey struct{}

// lists are the answers that must have one of these keys: an answer without any would look like an empty list.
var lists = map[string][]string{"servers": {"servers", "total_count"}, "os": {"os", "total_count"},
	"server-types": {"server_types"}, "ssh-keys": {"ssh_keys", "total_count"}}

// judge notes the type of an error answer, and returns an error for a body that must not be decoded. A JSON object
// counts whatever its Content-Type is.
func (t *trail) judge(resp *http.Response, body []byte) error {
	var object map[string]json.RawMessage
	parsed := json.Unmarshal(body, &object) == nil && object != nil
	good := resp.StatusCode >= 200 && resp.StatusCode <= 299
	switch {
	case len(body) > largest:
		return &strangeAnswer{fmt.Sprintf("%s with more than %d MB", t.text, largest>>20)}
	case parsed:
		resp.Header.Set("Content-Type", "application/json")
		if !good {
			_ = json.Unmarshal(object["type"], &t.kind)
			return nil
		}
	case good && len(body) == 0 && t.method != http.MethodGet:
		return nil
	case good || resp.StatusCode < 500:
		return &strangeAnswer{fmt.Sprintf("%s with %d bytes of %q instead of JSON", t.text, len(body), clipped(resp.Header.Get("Content-Type")))}
	default:
		return nil
	}
	if keys, ok := lists[path.Base(t.path)]; ok && t.method == http.MethodGet && !hasOne(object, keys) {
		return &strangeAnswer{fmt.Sprintf("%s with a JSON object that lacks %q", t.text, keys[0])}
	}
	return nil
}

func hasOne(object map[string]json.RawMessage, keys []string) bool {
	for _, k := range keys {
		if _, ok := object[k]; ok {
			return true
		}
	}
	return false
}

// clipped returns a text that fits into a line.
func clipped(text string) string { return text[:min(len(text), 80)] }

// worthRepeating returns why a request is sent again, or "". What was refused for its rate, or was never sent, is safe
// to repeat. Of the others only reads are: whether a write was carried out is for the caller to find out.
func (t *trail) worthRepeating(resp *http.Response, err error) string {
	read := t.method == http.MethodGet
	switch {
	case t.limited:
		return "rate limit"
	case resp != nil:
		if read && t.status >= 500 && t.status != http.StatusNotImplemented {
			return fmt.Sprintf("server fault %d", t.status)
		}
	case permanent(err), t.status >= 300 && t.status < 500:
	case !t.sent:
		return "no connection"
	case read && t.status == 0:
		return "no answer"
	case read:
		return "incomplete or unexpected answer"
	}
	return ""
}
