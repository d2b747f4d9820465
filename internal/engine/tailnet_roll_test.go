package engine_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/hosts/tailnet"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/overssh"
	"github.com/macfleet/macfleet/internal/sandbox"
	"github.com/macfleet/macfleet/internal/sandbox/mac"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/providers/kubernetes"
)

// tunnel is the only way to a Mac: its address in the tailnet, while its tailscaled carries packets. Its connections end when launchctl
// starts the daemon again.
type tunnel struct {
	world *sandbox.World
	host  string
	mu    sync.Mutex
	live  []*carried
	cuts  int // connections that it ended
}

// dial connects; where nothing answers, that takes 5 seconds on the Mac's clock.
func (u *tunnel) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if !strings.HasPrefix(address, "100.") {
		return nil, errors.New("there is no other way than the tailnet")
	}
	m, err := u.world.Mac(u.host)
	if err != nil {
		return nil, err
	}
	if s, err := m.Tailscale(); err != nil || s.Backend != "Running" || s.Address == "" { // it carries no packets
		_, err := m.Run(ctx, "root", "sleep 5")
		return nil, errors.Join(os.ErrDeadlineExceeded, err)
	}
	conn, err := u.world.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c := &carried{Conn: conn}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.live = append(u.live, c)
	return c, nil
}

// cut ends all connections for macfleet. The Mac does not see that, and finishes what runs.
func (u *tunnel) cut() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, c := range u.live {
		c.over.Store(true)
		_ = c.SetDeadline(time.Now().Add(-time.Second))
	}
	u.cuts += len(u.live)
	u.live = nil
}

// carried is a connection through the tunnel.
type carried struct {
	net.Conn
	over atomic.Bool // it carries nothing more
}

func (c *carried) Read(p []byte) (int, error) {
	if c.over.Load() {
		return 0, os.ErrDeadlineExceeded
	}
	return c.Conn.Read(p)
}

func (c *carried) Write(p []byte) (int, error) {
	if c.over.Load() {
		return 0, os.ErrDeadlineExceeded
	}
	return c.Conn.Write(p)
}

// Close ends a connection. Of one that was cut, the Mac's end stays open until the world is closed.
func (c *carried) Close() error {
	if c.over.Load() {
		return nil
	}
	return c.Conn.Close()
}

// overTailnet gives an engine the tailnet as the only way to its hosts. The Mac does not notice that a connection ends, unless kills is set:
// then the connection's command is killed before launchd starts the daemon again.
func overTailnet(t *testing.T, w *sandbox.World, e *engine.Engine, host string, kills bool) (*engine.Engine, *tunnel) {
	t.Helper()
	u := &tunnel{world: w, host: host}
	m := macOf(t, w, host)
	var once sync.Once
	m.Watch(func(argv []string, _ map[string]string) {
		called := strings.Join(argv, " ")
		starts := strings.HasPrefix(called, "launchctl bootstrap ") || strings.HasPrefix(called, "launchctl kickstart ")
		if !starts || !strings.Contains(called, "com.tailscale.tailscaled") {
			return
		}
		if kills {
			once.Do(func() { m.InterruptAfter(0, mac.Killed) })
		}
		u.cut()
	})
	o := hostOptions(t, w, e.Cluster.(*kubernetes.Client))
	o.Dial, o.Via, o.Poll = u.dial, []string{hosts.Tailscale}, 10*time.Millisecond
	o.Deadlines = hosts.Deadlines{Undo: 40 * time.Second}
	o.Tailnet = func(context.Context) (all tailnet.Devices, err error) {
		seen, err := w.Tailnet().Devices()
		for _, d := range seen {
			all = append(all, tailnet.Device{Name: d.Name, Address: netip.MustParseAddr(d.Addresses[0])})
		}
		return all, err
	}
	e.Hosts = overssh.New(o)
	return e, u
}

// TestTailnetRolledOverItself: the daemon that carries the only connection is restarted with other programs or another job. The line
// comes back, or the host takes the change back by itself and answers again.
func TestTailnetRolledOverItself(t *testing.T) {
	t.Parallel()
	version := func(kind string) func(*fleet.Tailscale) {
		return func(d *fleet.Tailscale) {
			d.Artifact = sample("tailscale", "1.104.0", "tailscale-1.104.0"+kind+"-darwin-arm64.tar.gz")
		}
	}
	for name, tc := range map[string]struct {
		change func(*fleet.Tailscale)
		kills  bool
		back   bool // the change is taken back
	}{
		"another version": {version(""), false, false},
		"another port":    {func(d *fleet.Tailscale) { d.Port = new(41999) }, false, false},
		"a version that never reaches the tailnet": {version("-deaf"), false, true},
		"a restart that dies with the connection":  {version(""), true, true},
		"a version that ends at once":              {version("-broken"), false, true},
	} {
		parallel(t, name, func(t *testing.T) {
			c := inTailnet(hostCore("production", 1))
			w, _ := converged(t, 3, c)
			host := member(t, w)
			m := macOf(t, w, host)
			was, err := m.Tailscale()
			must(t, err)
			before := traces(t, w)
			spec := c.Fleets[0].Groups[0].Spec.Tailscale
			former := *spec
			tc.change(spec)
			e, line := overTailnet(t, w, runTailnet(t, w, c, run(t, w, c), nil), host, tc.kills)
			p := planned(t, e)
			guards := 0
			for _, a := range p.Actions {
				guards += len(slices.DeleteFunc(slices.Clone(a.Changes), func(c plan.Change) bool { return c.Guard == nil }))
			}
			r := performed(t, e, p)
			if line.cuts == 0 || guards != 1 {
				t.Errorf("%d connections were cut, %d guarded changes in %q", line.cuts, guards, codesOf(p, host))
			}
			now, err := m.Tailscale()
			if err != nil || now.ID != was.ID || now.Address != was.Address || now.Backend != "Running" {
				t.Errorf("the daemon is %+v, %v; it was %+v", now, err, was)
			}
			if !tc.back {
				if !r.Converged() || len(r.Failures) > 0 {
					t.Fatalf("failures %q, left %q", failed(r), codesOf(r.After, host))
				}
			} else {
				if len(r.Failures) != 1 || !hasCode(r.Failures[0].Err, "rolled-back") || now.Version != was.Version {
					t.Fatalf("it runs %s, not %s; failures %q", now.Version, was.Version, failed(r))
				}
				*spec = former
				e, _ := overTailnet(t, w, runTailnet(t, w, c, run(t, w, c), nil), host, false)
				converges(t, e)
			}
			tidyTailnet(t, w, 1)
			for _, line := range traces(t, w) { // no file from before the roll is left
				if strings.Contains(line, "before") && !slices.Contains(before, line) {
					t.Errorf("it left %q", line)
				}
			}
		})
	}
}

// hasCode reports whether an error of a connection has a code.
func hasCode(err error, code string) bool {
	var e *hosts.Error
	return errors.As(err, &e) && e.Code.String() == code
}
