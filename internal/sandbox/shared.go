package sandbox

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
)

// SharedVariable is the environment variable that makes a process use a world served by another one.
// Its value is the result of Share.
const SharedVariable = "MACFLEET_SANDBOX_SHARED"

// shared is a world that another process serves.
type shared struct{ dir, scaleway, kubernetes, github, tailnet, macs string }

// sharedFor returns nil if no other process serves the world in dir for this one.
func sharedFor(dir string) *shared {
	words := strings.Split(os.Getenv(SharedVariable), "\n")
	if len(words) != 6 || words[0] != dir {
		return nil
	}
	return &shared{words[0], words[1], words[2], words[3], words[4], words[5]}
}

// Share lets other processes use this world until it is closed. This process serves their requests, so
// that their own cost can be measured without the simulator's.
func (w *World) Share() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("share the sandbox: %w", err)
	}
	context.AfterFunc(w.connections, func() { _ = listener.Close() })
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			go w.pass(near)
		}
	}()
	return strings.Join([]string{w.dir, w.ScalewayURL(), w.KubernetesURL(), w.GitHubURL(), w.TailnetURL(), listener.Addr().String()}, "\n"), nil
}

// pass connects a caller with the Mac that its first line names.
func (w *World) pass(near net.Conn) {
	defer near.Close()
	context.AfterFunc(w.connections, func() { _ = near.Close() })
	in := bufio.NewReader(near)
	address, err := in.ReadString('\n')
	if err != nil {
		return
	}
	far, err := w.DialContext(w.connections, "tcp", strings.TrimSpace(address))
	if err != nil {
		return // the caller sees a closed connection
	}
	defer far.Close()
	go func() {
		_, _ = io.Copy(far, in) // ends with either connection
		_ = far.Close()
	}()
	_, _ = io.Copy(near, far)
}

// dial connects to a Mac through the process that serves it.
func (s *shared) dial(ctx context.Context, address string) (net.Conn, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", s.macs)
	if err != nil {
		return nil, err
	}
	if _, err := io.WriteString(conn, address+"\n"); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}
