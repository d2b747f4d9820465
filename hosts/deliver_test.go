package hosts

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
)

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// random are bytes of every value.
func random(size int) []byte {
	data := make([]byte, size)
	r := rand.NewChaCha8([32]byte{byte(size), byte(size >> 8), byte(size >> 16)})
	_, _ = r.Read(data)
	return data
}

// parcel is an artifact with its bytes.
type parcel struct {
	plan.Delivery
	data []byte
}

func deliveryOf(data []byte) *parcel {
	return &parcel{plan.Delivery{Artifact: fleet.Artifact{Name: "kubelet", Version: "1", SHA256: digest(data), Fetch: fleet.FetchPush}, Space: int64(len(data))}, data}
}

func (p *parcel) source() (io.ReadCloser, int64, error) {
	return io.NopCloser(bytes.NewReader(p.data)), int64(len(p.data)), nil
}

// from is a source of that many bytes with others in their place.
func (p *parcel) from(r io.Reader) Source {
	return func() (io.ReadCloser, int64, error) { return io.NopCloser(r), int64(len(p.data)), nil }
}

// listed lists a folder.
func listed(t testing.TB, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return strings.Join(out, " ")
}

// sshdTarget is a real sshd, a client that reaches it, and its folder of artifacts.
func sshdTarget(t testing.TB, change func(*Options)) (*Client, string) {
	t.Helper()
	needRoot(t)
	key := newKey(t)
	d := startDaemon(t, daemonOptions{hostKeys: []any{edwards(t)}, login: key.PublicKey()})
	dir := filepath.Join(openDir(t), "macfleet", "artifacts")
	o := Options{User: me(t), Key: key, Dial: book(map[string]string{peerAddress + ":22": d.address}), Deadlines: patient(),
		ArtifactFolder: func(string) string { return dir }}
	change(&o)
	return New(o), dir
}

func TestDeliver(t *testing.T) {
	t.Parallel()
	var last, begun, under atomic.Int64
	c, dir := sshdTarget(t, func(o *Options) {
		o.Progress = func(p Progress) {
			switch p.Edge {
			case Begins:
				begun.Add(1)
				under.Add(1)
			case Ends:
				under.Add(-1)
			default:
				last.Store(p.Done*1000 + p.Size%1000)
			}
		}
	})
	conn := connect(t, c, acme1())
	var names []string
	for _, size := range []int{0, 1, 3 << 20} {
		d := deliveryOf(random(size))
		name := d.Artifact.SHA256
		names = append(names, name)
		if size > 0 { // something else of this name is replaced
			write(t, filepath.Join(dir, name), "other bytes", 0o666)
		}
		for i := range 2 {
			got, err := conn.Deliver(within(t), d.Delivery, d.source)
			if want := (Delivered{There: i == 1, Sent: int64((1 - i) * size)}); err != nil || got != want {
				t.Fatalf("%+v, %v", got, err)
			}
		}
		data, err := os.ReadFile(filepath.Join(dir, name))
		info, serr := os.Stat(filepath.Join(dir, name))
		if err != nil || serr != nil || !bytes.Equal(data, d.data) || info.Mode() != 0o644 {
			t.Errorf("%v, %v, %d bytes of %d, mode %v", err, serr, len(data), size, info.Mode())
		}
		if want := int64(size*1000 + size%1000); last.Load() != want {
			t.Errorf("progress %d, want %d", last.Load(), want)
		}
	}
	if begun.Load() != 3 || under.Load() != 0 {
		t.Errorf("%d uploads started, %d did not end", begun.Load(), under.Load())
	}
	for _, name := range names {
		if !strings.Contains(listed(t, dir), name) || len(strings.Fields(listed(t, dir))) != len(names) {
			t.Errorf("the folder holds %s", listed(t, dir))
		}
	}
}

// TestDeliverFails leaves nothing under the artifact's name, and the next one brings it.
func TestDeliverFails(t *testing.T) {
	t.Parallel()
	c, _ := sshdTarget(t, func(*Options) {})
	data := random(1 << 20)
	tests := []struct {
		name   string
		change func(d *parcel, c *Conn) Source
		text   string
		parts  int // that stay
	}{
		{"other bytes", func(d *parcel, _ *Conn) Source { return d.from(bytes.NewReader(make([]byte, 1<<20))) }, "the bytes that arrived have the SHA-256 30e14955", 0},
		{"too few bytes", func(d *parcel, _ *Conn) Source { return d.from(bytes.NewReader(data[:1000])) }, "the source ended after 1000 of 1048576 bytes", 1},
		{"a source that fails", func(d *parcel, _ *Conn) Source {
			return d.from(io.MultiReader(bytes.NewReader(data[:1000]), broken{errors.New("the disk is ill")}))
		}, "the disk is ill", 1},
		{"no source", func(*parcel, *Conn) Source {
			return func() (io.ReadCloser, int64, error) { return nil, 0, errors.New("it is gone") }
		}, "it is gone", 0},
		{"a cut line", func(d *parcel, c *Conn) Source {
			return d.from(io.MultiReader(bytes.NewReader(data[:500_000]), cutting{c}))
		}, "acme-1: command: ", 1},
		{"no digest", func(d *parcel, _ *Conn) Source { d.Artifact.SHA256 = "../x"; return d.source }, "64 digits", 0},
		{"too little room", func(d *parcel, _ *Conn) Source { d.Space = 1 << 60; return d.source }, "needs 1153 PB", 0},
		{"too little room for the file", func(d *parcel, _ *Conn) Source {
			return func() (io.ReadCloser, int64, error) { return io.NopCloser(bytes.NewReader(nil)), 1 << 60, nil }
		}, "needs 1153 PB", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(openDir(t), "macfleet", "artifacts")
			c := New(c.opts)
			c.opts.ArtifactFolder = func(string) string { return dir }
			conn := connect(t, c, acme1())
			d := deliveryOf(data)
			if _, err := conn.Deliver(within(t), d.Delivery, tt.change(d, conn)); err == nil || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("error = %v, want %q", err, tt.text)
			}
			conn.Close()
			if left := strings.Fields(listed(t, dir)); len(left) > tt.parts || len(left) == 1 && left[0] == digest(data) {
				t.Errorf("left behind: %q", left)
			}
			d = deliveryOf(data)
			if _, err := connect(t, c, acme1()).Deliver(within(t), d.Delivery, d.source); err != nil {
				t.Error(err)
			}
			is(t, "left behind", listed(t, dir), digest(data))
		})
	}
}

type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }

// cutting ends the connection and then the file.
type cutting struct{ conn *Conn }

func (c cutting) Read([]byte) (int, error) {
	c.conn.Close()
	return 0, io.EOF
}

// TestDeliverGoesOn cuts the line of a large artifact half-way. The next delivery
// sends the other half.
func TestDeliverGoesOn(t *testing.T) {
	t.Parallel()
	const all = 24 << 20
	c, dir := sshdTarget(t, func(*Options) {})
	conn := connect(t, c, acme1())
	d := deliveryOf(random(all))
	_, err := conn.Deliver(within(t), d.Delivery, d.from(io.MultiReader(bytes.NewReader(d.data[:all/2]), cutting{conn})))
	wantError(t, err, "connection-lost", Talking, "")
	got, err := connect(t, c, acme1()).Deliver(within(t), d.Delivery, d.source)
	if err != nil || got.Resumed < all/4 || got.Sent != all-got.Resumed {
		t.Fatalf("%+v, %v", got, err)
	}
	if sent := c.Stats().Sent; sent > all+10<<20 {
		t.Errorf("%d bytes were sent in all", sent)
	}
	if data, err := os.ReadFile(filepath.Join(dir, d.Artifact.SHA256)); err != nil || !bytes.Equal(data, d.data) {
		t.Errorf("%v, %d bytes", err, len(data))
	}
	is(t, "left behind", listed(t, dir), d.Artifact.SHA256)
}

// TestDeliverPassesOver what is not a beginning of the artifact, what is longer, and a link under its name.
func TestDeliverPassesOver(t *testing.T) {
	t.Parallel()
	c, dir := sshdTarget(t, func(*Options) {})
	conn := connect(t, c, acme1())
	for _, part := range []string{"another beginning", strings.Repeat("x", 20_000)} {
		d := deliveryOf(random(10_000 + len(part)%7))
		write(t, filepath.Join(dir, "."+d.Artifact.SHA256+".old"), part, 0o600)
		got, err := conn.Deliver(within(t), d.Delivery, d.source)
		if err != nil || got != (Delivered{Sent: int64(len(d.data))}) {
			t.Errorf("%+v, %v", got, err)
		}
		if got := listed(t, dir); strings.Contains(got, "old") {
			t.Errorf("left behind: %q", got)
		}
	}
	d := deliveryOf(random(500))
	write(t, filepath.Join(dir, "x"), string(d.data), 0o644)
	must(t, os.Symlink("x", filepath.Join(dir, d.Artifact.SHA256)))
	if got, err := conn.Deliver(within(t), d.Delivery, d.source); err != nil || got.Sent != 500 {
		t.Errorf("over a link: %+v, %v", got, err)
	}
}

// TestDeliverBeginsAgain where another run cleared away the part that it resumes, also over a broken file of the artifact's name.
func TestDeliverBeginsAgain(t *testing.T) {
	t.Parallel()
	c, dir := sshdTarget(t, func(*Options) {})
	d := deliveryOf(random(10_000))
	gone := look{part: "." + d.Artifact.SHA256 + ".gone", bytes: 300, sum: digest(d.data[:300]), free: 1 << 30}
	for range 2 {
		got, err := connect(t, c, acme1()).push(within(t), d.Artifact, gone, d.source)
		if err != nil || got != (Delivered{Sent: 10_000}) || listed(t, dir) != d.Artifact.SHA256 {
			t.Errorf("%+v, %v, the folder holds %s", got, err, listed(t, dir))
		}
		write(t, filepath.Join(dir, d.Artifact.SHA256), "broken", 0o644)
	}
}

// TestDeliverIsOvertaken: another run ends, and clears all parts away, right before this one resumes its part, or while it does.
func TestDeliverIsOvertaken(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"mktemp", "wc"} {
		bin := openDir(t)
		c, dir := sshdTarget(t, func(o *Options) { o.Prologue = withStubs(bin) })
		d := deliveryOf(random(10_000))
		part, whole := "."+d.Artifact.SHA256+".part", filepath.Join(dir, d.Artifact.SHA256)
		must(t, os.MkdirAll(dir, 0o755))
		write(t, filepath.Join(dir, part), string(d.data[:300]), 0o644)
		write(t, filepath.Join(bin, "data"), string(d.data), 0o644)
		write(t, filepath.Join(bin, tool), fmt.Sprintf("#!/bin/sh\n/usr/bin/%[4]s \"$@\"\n[ -e %[1]s ] || { cp %[2]s %[1]s; rm -f %[3]s; }\n",
			whole, filepath.Join(bin, "data"), filepath.Join(dir, "."+d.Artifact.SHA256+".*"), tool), 0o755)
		seen := look{part: part, bytes: 300, sum: digest(d.data[:300]), free: 1 << 30}
		if got, err := connect(t, c, acme1()).push(within(t), d.Artifact, seen, d.source); err != nil || got.Resumed != 300 {
			t.Errorf("%s: %+v, %v", tool, got, err)
		}
		is(t, "left behind", listed(t, dir), d.Artifact.SHA256)
	}
}

// TestDeliverTwiceAtOnce: two runs bring the same artifact, and both succeed.
func TestDeliverTwiceAtOnce(t *testing.T) {
	t.Parallel()
	c, dir := sshdTarget(t, func(*Options) {})
	d := deliveryOf(random(4 << 20))
	var both, done sync.WaitGroup
	both.Add(2)
	for range 2 {
		done.Go(func() {
			conn := connected(t, c, acme1())
			if conn == nil {
				both.Done()
				return
			}
			meet := sync.OnceFunc(func() { both.Done(); both.Wait() })
			source := func() (io.ReadCloser, int64, error) { // a new one for each attempt
				return d.from(io.MultiReader(bytes.NewReader(d.data[:3<<20]), hook(meet), bytes.NewReader(d.data[3<<20:])))()
			}
			if _, err := conn.Deliver(within(t), d.Delivery, source); err != nil {
				t.Error(err)
			}
		})
	}
	done.Wait()
	is(t, "left behind", listed(t, dir), d.Artifact.SHA256)
}

// TestDeliverLimit brings an artifact to eight real hosts at once: never are more
// on their way than may be, and as many are.
func TestDeliverLimit(t *testing.T) {
	t.Parallel()
	needRoot(t)
	const limit, all = 3, 8
	key, addresses, dir := newKey(t), map[string]string{}, openDir(t)
	for i := range all {
		addresses[fmt.Sprintf("192.0.2.%d:22", i+1)] = startDaemon(t, daemonOptions{hostKeys: []any{edwards(t)}, login: key.PublicKey()}).address
	}
	folder := func(server string) string { return filepath.Join(dir, server, "artifacts") }
	c := New(Options{User: me(t), Key: key, Dial: book(addresses), Deadlines: patient(), Uploads: limit, ArtifactFolder: folder})
	var now, most, first atomic.Int32
	var standing, done sync.WaitGroup
	standing.Add(limit)
	d := deliveryOf(random(3 << 20))
	for i := range all {
		done.Go(func() {
			to := target(fmt.Sprintf("acme-%d", i), fmt.Sprintf("192.0.2.%d", i+1))
			to.Server.ID = fmt.Sprint(i)
			conn := connected(t, c, to)
			if conn == nil {
				return
			}
			source := d.from(io.MultiReader(hook(func() {
				n := now.Add(1)
				for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
				if first.Add(1) <= limit {
					standing.Done()
				}
				standing.Wait()
			}), bytes.NewReader(d.data[:3<<20-50]), hook(func() { now.Add(-1) }), bytes.NewReader(d.data[3<<20-50:])))
			if _, err := conn.Deliver(within(t), d.Delivery, source); err != nil {
				t.Error(err)
			}
		})
	}
	done.Wait()
	is(t, "at once", most.Load(), limit)
	for i := range all {
		is(t, "artifacts of a host", listed(t, folder(fmt.Sprint(i))), d.Artifact.SHA256)
	}
}

// hook is an empty file that does something when it is read.
type hook func()

func (h hook) Read([]byte) (int, error) {
	h()
	return 0, io.EOF
}

// push sends what follows the first bytes of an artifact, which a part has.
func (l lab) push(at int, dir string, data []byte, part string, offset int64) (plan.Answer, bool) {
	l.T.Helper()
	p := &packer{source: bytes.NewReader(data[offset:]), now: time.Now, tell: func(int64) {}}
	packed, err := io.ReadAll(p)
	if err != nil {
		l.T.Fatal(err)
	}
	l.stdin = fmt.Sprintf("%s\n%s\n%s\n%d\n%s\n%d\n%s", testMark, dir, digest(data), len(data), part, offset, packed)
	return l.run(at, own("artifact-push", "root"))
}

// TestPushKilled: there is no file of the artifact's name, or the whole one,
// wherever the script ends; the next one brings it.
func TestPushKilled(t *testing.T) {
	data := random(1000)
	killedEverywhere(t, func(t *testing.T, l lab, at int) bool {
		dir := filepath.Join(l.etc, "artifacts")
		push := func(at int, c look) (plan.Answer, bool) {
			return l.push(at, dir, data, cmp.Or(c.part, "-"), c.bytes)
		}
		write(t, filepath.Join(dir, "."+digest(data)+".old"), string(data[:300]), 0o600)
		_, killed := push(at, look{part: "." + digest(data) + ".old", bytes: 300})
		path := filepath.Join(dir, digest(data))
		if got := l.read(path); got != "" && got != string(data) {
			t.Errorf("killed at %d: the file is %q", at, head(got))
		}
		l.stdin = ""
		a, _ := l.run(0, own("artifact-look", "root", dir, digest(data)))
		seen, ok := parseLook(a.Stdout)
		if !ok || seen.part != "" && seen.sum != digest(data[:seen.bytes]) {
			t.Errorf("killed at %d: %+v, %+v", at, a, seen)
		}
		if !seen.there {
			a, _ = push(0, seen)
		}
		if got := l.read(path); got != string(data) {
			t.Errorf("killed at %d: the file is %q: %+v", at, head(got), a)
		}
		return killed
	})
}

// TestPushToAFullDisk leaves nothing.
func TestPushToAFullDisk(t *testing.T) {
	labs(t, func(t *testing.T, l lab) {
		dir, data := filepath.Join(l.etc, "artifacts"), random(1000)
		l.tool("gzip", `printf x; echo "$0: stdout: No space left on device" >&2; exit 1`)
		a, _ := l.push(0, dir, data, "-", 0)
		if got := listed(t, dir); !strings.Contains(a.Stdout, testMark+" end 4\n") || !strings.Contains(a.Stderr, "No space left") || got != "" {
			t.Errorf("%+v, left behind %q", a, got)
		}
	})
}

func TestParseLook(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]look{
		"there\n":                   {there: true},
		"free 7\n":                  {free: 7168},
		"part .a.b 12 cd\nfree 0\n": {part: ".a.b", bytes: 12, sum: "cd"},
		"":                          {}, "free x\n": {}, "part .a 1\nfree 1\n": {}, "part .a.b x cd\nfree 1\n": {}, "hello\n": {}, "\nthere\n": {}, "part a 1 b\n": {},
	} {
		got, ok := parseLook(text)
		if sound := want != (look{}); ok != sound || ok && got != want {
			t.Errorf("%q: %+v, %t", text, got, ok)
		}
	}
}

func TestSize(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0 bytes", 999: "999 bytes", 1000: "1.0 kB", 9949: "9.9 kB", 20 << 20: "21 MB", 60_000_000: "60 MB", 999_600: "1.0 MB", 400_000_000_000: "400 GB"} {
		is(t, fmt.Sprint(n), size(n), want)
	}
}

// TestPushWithoutItsPart: another run has cleared it away. A file that existed before, even the whole artifact, does not show that this
// run was overtaken: the next attempt brings it.
func TestPushWithoutItsPart(t *testing.T) {
	labs(t, func(t *testing.T, l lab) {
		dir, data := filepath.Join(l.etc, "artifacts"), random(1000)
		a, _ := l.push(0, dir, data, ".gone", 300)
		if got := listed(t, dir); !strings.Contains(a.Stdout, testMark+" end 7\n") || got != "" {
			t.Errorf("%+v, left behind %q", a, got)
		}
		write(t, filepath.Join(dir, digest(data)), string(data), 0o644)
		a, _ = l.push(0, dir, data, ".gone", 300)
		if got := listed(t, dir); !strings.Contains(a.Stdout, testMark+" end 7\n") || got != digest(data) {
			t.Errorf("%+v, left behind %q", a, got)
		}
	})
}
