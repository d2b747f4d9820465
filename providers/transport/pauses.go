package transport

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

// Pauses bound how requests are repeated.
type Pauses struct {
	Tries   int           // a request is sent so often at most, where the provider does not limit the rate
	First   time.Duration // before the second try, where the provider does not say; twice as long before each other
	Longest time.Duration // one pause
	Total   time.Duration // from the first try to the last one
	Body    time.Duration // for the body of one answer
	Now     func() time.Time
	Sleep   func(context.Context, time.Duration) error // until the time is over, or ctx is done: its cause is the error
}

// NewPauses returns pauses of a minute and a half at most, in which a person still waits for a command.
func NewPauses() *Pauses {
	return &Pauses{Tries: 6, First: 200 * time.Millisecond, Longest: 30 * time.Second, Total: 90 * time.Second, Body: 30 * time.Second, Now: time.Now, Sleep: sleep}
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
func (p *Pauses) before(try int, since, asked time.Duration, limited bool) time.Duration {
	pause := min(p.Longest, p.First<<min(try-1, 16))
	if asked > 0 {
		pause = max(p.First, asked)
	}
	if try >= p.Tries && !(limited && asked > 0) || pause > p.Longest || since+pause > p.Total {
		return -1
	}
	return pause
}

// Asked returns how long an answer's headers ask to wait; below 0: they do not say. Every answer may have
// X-Ratelimit-Reset, which counts only where the requests of a period are used up; then the longer one of it and
// Retry-After does. Both are a number of seconds, a Unix time or an HTTP date.
func Asked(header http.Header, usedUp bool, now time.Time) time.Duration {
	longest, names := time.Duration(-1), []string{"Retry-After"}
	if usedUp {
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
