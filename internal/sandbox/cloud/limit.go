package cloud

import (
	"fmt"
	"net/http"
	"sync"
	"time"
)

// limiter counts requests in windows of one second, as the vendor's gateway does.
type limiter struct {
	limit int

	mu     sync.Mutex
	window time.Time
	used   int
}

// take counts one request, writes the rate headers and reports whether the request is within the
// limit.
func (l *limiter) take(now time.Time, header http.Header) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if window := now.Truncate(time.Second); !window.Equal(l.window) {
		l.window, l.used = window, 0
	}
	l.used++
	header.Set("X-Ratelimit-Limit", fmt.Sprintf("%d, %d;w=1", l.limit, l.limit))
	header.Set("X-Ratelimit-Remaining", fmt.Sprint(max(0, l.limit-l.used)))
	header.Set("X-Ratelimit-Reset", "1")
	return l.used <= l.limit
}
