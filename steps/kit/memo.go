package kit

import "sync/atomic"

// Memo keeps what a pure function returned for the latest texts: the hosts of a fleet have the same few files. It holds one
// result for each remainder of a text's length, so it does not grow. What it returns does not depend on what it holds.
type Memo[T any] struct {
	latest [memoSize]atomic.Pointer[memoized[T]]
}

const memoSize = 1021

type memoized[T any] struct {
	text   string
	result T
}

// Of returns the result for a text: the kept one, or that of a call of do. Hosts share it, so it must not be changed.
func (m *Memo[T]) Of(text string, do func(string) T) T {
	slot := &m.latest[len(text)%memoSize]
	if last := slot.Load(); last != nil && last.text == text {
		return last.result
	}
	made := &memoized[T]{text, do(text)}
	slot.Store(made)
	return made.result
}
