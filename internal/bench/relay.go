package main

import (
	"net"
	"sync"
	"time"
)

// relay stands in front of a server and holds every byte back for a while, as a
// long way does. On loopback a program that asks in ten round trips is as fast
// as one that asks in five; over a relay it is not.
type relay struct {
	listener net.Listener
	to       string
	delay    time.Duration // one way
	mu       sync.Mutex
	open     map[net.Conn]bool
	all      sync.WaitGroup
}

// far returns the fleet as it is seen from away: a round trip takes away longer.
// The connection's own handshake, TCP's, is not held back.
func (f *sshFleet) far(away time.Duration) (*sshFleet, func(), error) {
	there := *f
	there.Addresses = nil
	var all []*relay
	stop := func() {
		for _, r := range all {
			r.stop()
		}
	}
	for _, to := range f.Addresses {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			stop()
			return nil, nil, err
		}
		r := &relay{listener: l, to: to, delay: away / 2, open: make(map[net.Conn]bool)}
		r.all.Go(r.accept)
		all = append(all, r)
		there.Addresses = append(there.Addresses, l.Addr().String())
	}
	return &there, stop, nil
}

func (r *relay) accept() {
	for {
		near, err := r.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", r.to)
		if err != nil || !r.keep(near, far) {
			_ = near.Close() // the client sees a connection that broke
			continue
		}
		r.all.Go(func() { r.pass(far, near) })
		r.all.Go(func() { r.pass(near, far) })
	}
}

// keep notes connections, so that stop can end them. After it they are closed.
func (r *relay) keep(conns ...net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range conns {
		if r.open == nil {
			_ = c.Close()
			continue
		}
		r.open[c] = true
	}
	return r.open != nil
}

func (r *relay) stop() {
	_ = r.listener.Close()
	r.mu.Lock()
	for c := range r.open {
		_ = c.Close()
	}
	r.open = nil
	r.mu.Unlock()
	r.all.Wait()
}

// parcel is what was read at once, and when it is due.
type parcel struct {
	bytes []byte
	due   time.Time
}

// pass hands bytes on, each as late as the delay says. What ends one direction
// ends both: SSH closes a connection as a whole.
func (r *relay) pass(to, from net.Conn) {
	parcels := make(chan parcel, 1024)
	r.all.Go(func() {
		defer close(parcels)
		for {
			b := make([]byte, 32<<10)
			n, err := from.Read(b)
			if n > 0 {
				parcels <- parcel{b[:n], time.Now().Add(r.delay)}
			}
			if err != nil {
				return
			}
		}
	})
	var err error
	for p := range parcels {
		if err != nil {
			continue // the reader must come to its end
		}
		time.Sleep(time.Until(p.due))
		if _, err = to.Write(p.bytes); err != nil {
			_ = from.Close()
		}
	}
	_ = to.Close()
	r.mu.Lock()
	delete(r.open, to)
	r.mu.Unlock()
}
