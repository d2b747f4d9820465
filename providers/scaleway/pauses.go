package scaleway

import (
	"context"
	"crypto/tls"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Waiting is a request that is sent again after a pause.
type Waiting struct {
	Method, Path string
	Why          string // what it waits for
	RequestID    string // of the answer that asked for it; empty: unknown
	Try          int    // how often it was sent, from 1
	For          time.Duration
}

// pauses bound how requests are repeated.
type pauses struct {
	tries   int           // a request is sent so often at most, where the provider does not limit the rate
	first   time.Duration // before the second try, where the provider does not say; twice as long before each other
	longest time.Duration // one pause
	total   time.Duration // from the first try to the last one
	body    time.Duration // for the body of one answer
	now     func() time.Time
	sleep   func(context.Context, time.Duration) error
}

func newPauses() *pauses {
	return &pauses{tries: 6, first: 200 * time.Millisecond, longest: 30 * time.Second, total: 90 * time.Second, body: 30 * time.Second, now: time.Now, sleep: sleep}
}

// sleep waits, unless ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// before returns the pause before another try; below 0: there is none. It is never shorter than the provider asks for:
// a request that comes too early only prolongs the limit.
func (p *pauses) before(try int, since, asked time.Duration, limited bool) time.Duration {
	pause := min(p.longest, p.first<<min(try-1, 16))
	if asked > 0 {
		pause = max(p.first, asked)
	}
	if try >= p.tries && !(limited && asked > 0) || pause > p.longest || since+pause > p.total {
		return -1
	}
	return pause
}

// asked returns how long an answer's headers ask to wait; below 0: they do not say. Every answer has X-Ratelimit-Reset,
// which counts only where the rate is limited; then the longer one of it and Retry-After does. Both are a number of
// seconds, a Unix time or an HTTP date.
func asked(header http.Header, limited bool, now time.Time) time.Duration {
	longest, names := time.Duration(-1), []string{"Retry-After"}
	if limited {
		names = append(names, "X-Ratelimit-Reset")
	}
	for _, name := range names {
		for _, value := range header.Values(name) {
			if wait, ok := waitOf(value, now); ok {
				longest = max(longest, wait)
			}
		}
	}
	return longest
}

// epoch distinguishes a Unix time from a number of seconds.
const epoch = 1e9

// waitOf parses one header. A time that has passed means no wait.
func waitOf(value string, now time.Time) (time.Duration, bool) {
	value = strings.TrimSpace(value)
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now)), true
	}
	value, _, _ = strings.Cut(value, ";")
	value, _, _ = strings.Cut(value, ",")
	seconds, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	if err != nil || math.IsNaN(seconds) || seconds < 0 {
		return 0, false
	}
	if seconds >= epoch {
		seconds = max(0, seconds-float64(now.Unix()))
	}
	if seconds > math.MaxInt64/float64(2*time.Second) {
		return math.MaxInt64 / 2, true
	}
	return time.Duration(math.Ceil(seconds * float64(time.Second))), true
}

// permanent reports whether an error comes back with every try, such as a certificate that is not trusted.
func permanent(err error) bool {
	var certificate *tls.CertificateVerificationError
	var header tls.RecordHeaderError
	return errors.As(err, &certificate) || errors.As(err, &header)
}
