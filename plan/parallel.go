package plan

import (
	"sync"
	"sync/atomic"
)

// inParallel calls do with every number below n, on several goroutines at once. What
// do does for one number must not touch what it does for another: then the
// outcome is that of a loop.
func inParallel(n, workers int, do func(int)) {
	var wg sync.WaitGroup
	var next atomic.Int64
	for range min(workers, n) {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				do(i)
			}
		})
	}
	wg.Wait()
}
