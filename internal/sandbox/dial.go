package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox/mac"
)

// DialContext connects to port 22 of a server's public address, or of its address in the tailnet: a real TCP connection over loopback,
// served by the simulated Mac. No other address is reachable.
func (w *World) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	if w.shared != nil {
		return w.shared.dial(ctx, addr)
	}
	fail := func(err error) error {
		return &net.OpError{Op: "dial", Net: network, Addr: target(addr), Err: err}
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fail(err)
	}
	address, err := netip.ParseAddr(host)
	if err != nil || network != "tcp" && network != "tcp4" {
		return nil, fail(unreachable())
	}
	server, found, err := w.cloud.ServerAt(address.Unmap())
	if err != nil {
		return nil, fail(err)
	}
	if !found {
		if server, found, err = w.onTailnet(address.Unmap()); err != nil {
			return nil, fail(err)
		}
	}
	if !found {
		return nil, fail(unreachable())
	}
	open, err := w.incidentsOf(server.ID)
	if err != nil {
		return nil, fail(err)
	}
	if open.find(unreachableName) != nil {
		w.log.ssh(server.Name, "unreachable")
		return nil, fail(unreachable())
	}
	if port != "22" {
		return nil, fail(os.NewSyscallError("connect", syscall.ECONNREFUSED))
	}
	machine, err := w.macs.get(server)
	if err != nil {
		return nil, fail(err)
	}
	if err := machine.Settle(ctx); errors.Is(err, mac.ErrDown) {
		return nil, fail(os.NewSyscallError("connect", syscall.ETIMEDOUT))
	} else if err != nil {
		return nil, fail(err)
	}
	if reachable, err := machine.Reachable(); err != nil {
		return nil, fail(err)
	} else if !reachable {
		return nil, fail(os.NewSyscallError("connect", syscall.ETIMEDOUT))
	}
	if banned, err := machine.Banned(); err != nil {
		return nil, fail(err)
	} else if banned {
		return nil, fail(os.NewSyscallError("connect", syscall.ETIMEDOUT))
	}
	conn, err := w.ssh.connect(ctx, w.connections, w.answer(server, machine, open))
	if err != nil {
		return nil, fail(err)
	}
	w.log.ssh(server.Name, "connect")
	return conn, nil
}

func unreachable() error { return os.NewSyscallError("connect", syscall.EHOSTUNREACH) }

// target is the dialled address, for the error.
type target string

func (t target) Network() string { return "tcp" }
func (t target) String() string  { return string(t) }

// acceptPatience limits how long to wait for the other end of a connection that the kernel has already
// established.
const acceptPatience = 10 * time.Second

// switchboard connects to simulated Macs through one listener on loopback.
type switchboard struct {
	mu       sync.Mutex
	listener *net.TCPListener
	calls    calls
}

// connect returns the near end of a new connection. serve answers at the far end until it is closed or
// serving ends.
func (s *switchboard) connect(ctx, serving context.Context, serve func(context.Context, net.Conn)) (net.Conn, error) {
	if !s.calls.begin() {
		return nil, net.ErrClosed
	}
	near, far, err := s.pair(ctx)
	if err != nil {
		s.calls.end()
		return nil, err
	}
	go func() {
		defer s.calls.end()
		serve(serving, far)
	}()
	return near, nil
}

// pair creates both ends of a connection. Dialling and accepting share one lock, so that each accepted
// connection is the one just dialled; other clients of the port are disconnected.
func (s *switchboard) pair(ctx context.Context) (near, far net.Conn, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener == nil {
		s.listener, err = net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			return nil, nil, fmt.Errorf("open a port on loopback for the sandbox: %w", err)
		}
	}
	var dialer net.Dialer
	near, err = dialer.DialContext(ctx, "tcp", s.listener.Addr().String())
	if err != nil {
		return nil, nil, err
	}
	if err := s.listener.SetDeadline(time.Now().Add(acceptPatience)); err != nil {
		_ = near.Close()
		return nil, nil, err
	}
	for {
		far, err = s.listener.Accept()
		if err != nil {
			_ = near.Close()
			return nil, nil, err
		}
		if far.RemoteAddr().String() == near.LocalAddr().String() {
			return near, far, nil
		}
		_ = far.Close()
	}
}

// close stops the listener and waits for the connections, which the caller has ended.
func (s *switchboard) close() error {
	s.calls.stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	if s.listener != nil {
		err = s.listener.Close()
	}
	s.calls.wait()
	return err
}
