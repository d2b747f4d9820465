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
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/hosts/tailnet"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/overssh"
	"github.com/macfleet/macfleet/internal/sandbox"
	"github.com/macfleet/macfleet/providers/kubernetes"
)

// tunnel is the only way to a Mac: its address in the tailnet, while its tailscaled carries packets.
type tunnel struct {
	world *sandbox.World
	host  string
	kills bool // the Mac sees the end of a connection, and ends what it runs for it
	tends sync.WaitGroup
}

// up reports whether the Mac's tailscaled carries packets.
func (u *tunnel) up() bool {
	m, err := u.world.Mac(u.host)
	if err != nil {
		return false
	}
	s, err := m.Tailscale()
	return err == nil && s.Backend == "Running" && s.Address != ""
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
	if !u.up() {
		_, err := m.Run(ctx, "root", "sleep 5")
		return nil, errors.Join(os.ErrDeadlineExceeded, err)
	}
	conn, err := u.world.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	carried := &carried{Conn: conn, over: make(chan struct{})}
	u.tends.Go(func() {
		every := time.NewTicker(5 * time.Millisecond)
		defer every.Stop()
		for u.up() {
			select {
			case <-carried.over:
				return
			case <-every.C:
			}
		}
		carried.cut(u.kills)
	})
	return carried, nil
}

// carried is a connection that ends with the tunnel.
type carried struct {
	net.Conn
	once sync.Once
	over chan struct{}
}

// cut ends the connection for macfleet. The Mac does not see that, and finishes what runs, unless both ends are cut.
func (c *carried) cut(both bool) {
	c.once.Do(func() { close(c.over) })
	if both {
		_ = c.Conn.Close()
		return
	}
	_ = c.SetDeadline(time.Now().Add(-time.Second))
}

// Close ends a connection that the tunnel still carries. Of one that was cut, the Mac's end stays open until the world is closed.
func (c *carried) Close() error {
	select {
	case <-c.over:
		return nil
	default:
	}
	c.once.Do(func() { close(c.over) })
	return c.Conn.Close()
}

// overTailnet gives an engine no other way to its hosts than the tailnet.
func overTailnet(t *testing.T, w *sandbox.World, e *engine.Engine, host string, kills bool) *engine.Engine {
	t.Helper()
	u := &tunnel{world: w, host: host, kills: kills}
	t.Cleanup(u.tends.Wait)
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
	return e
}

// TestTailnetRolledOverItself: the daemon that carries the only connection is restarted with other programs or another job. The line
// comes back, or the host takes the change back by itself and answers again.
func TestTailnetRolledOverItself(t *testing.T) {
	t.Parallel()
	version := func(name string) func(*fleet.Tailscale) {
		return func(d *fleet.Tailscale) {
			d.Artifact = sample("tailscale", "1.104.0", name)
		}
	}
	for name, tc := range map[string]struct {
		change func(*fleet.Tailscale)
		kills  bool
		back   bool // the change is taken back
	}{
		"another version": {version("tailscale-1.104.0-darwin-arm64.tar.gz"), false, false},
		"another port":    {func(d *fleet.Tailscale) { d.Port = new(41999) }, false, false},
		"a version that never reaches the tailnet": {version("tailscale-1.104.0-deaf-darwin-arm64.tar.gz"), false, true},
		"a restart that dies with the connection":  {version("tailscale-1.104.0-darwin-arm64.tar.gz"), true, true},
		"a version that ends at once":              {version("tailscale-1.104.0-broken-darwin-arm64.tar.gz"), false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _ := world(t, 3)
			c := inTailnet(hostCore("production", 1))
			converges(t, runTailnet(t, w, c, run(t, w, c), nil))
			host := member(t, w)
			m, err := w.Mac(host)
			if err != nil {
				t.Fatal(err)
			}
			was, err := m.Tailscale()
			if err != nil {
				t.Fatal(err)
			}
			before := traces(t, w)
			former := *c.Fleets[0].Groups[0].Spec.Tailscale
			changed := former
			tc.change(&changed)
			c.Fleets[0].Groups[0].Spec.Tailscale = &changed
			e := overTailnet(t, w, runTailnet(t, w, c, run(t, w, c), nil), host, tc.kills)
			p := planned(t, e)
			guards := 0
			for _, a := range p.Actions {
				for _, change := range a.Changes {
					if change.Guard != nil {
						guards++
					}
				}
			}
			if guards != 1 {
				t.Fatalf("%d guarded changes in %q", guards, codesOf(p, host))
			}
			r := performed(t, e, p)
			now, err := m.Tailscale()
			if err != nil || now.ID != was.ID || now.Address != was.Address || now.Backend != "Running" {
				t.Errorf("the daemon is %+v, %v; it was %+v", now, err, was)
			}
			if !tc.back {
				if !r.Converged() || len(r.Failures) > 0 {
					t.Fatalf("failures %q, left %q", failed(r), codesOf(r.After, host))
				}
			} else {
				if len(r.Failures) != 1 || !hasCode(r.Failures[0].Err, "rolled-back") {
					t.Fatalf("failures %q", failed(r))
				}
				if now.Version != was.Version {
					t.Errorf("it runs %s, not %s", now.Version, was.Version)
				}
				c.Fleets[0].Groups[0].Spec.Tailscale = &former
				converges(t, overTailnet(t, w, runTailnet(t, w, c, run(t, w, c), nil), host, false))
			}
			tidyTailnet(t, w, 1)
			// No file from before the roll is left.
			after := traces(t, w)
			for _, line := range after {
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
