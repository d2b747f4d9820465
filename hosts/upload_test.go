package hosts

import (
	"bytes"
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
)

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// random are bytes of every value.
func random(size int) []byte {
	data := make([]byte, size)
	r := rand.NewChaCha8([32]byte{byte(size)})
	_, _ = r.Read(data)
	return data
}

func uploadOf(data []byte, path string) Upload {
	return Upload{Source: bytes.NewReader(data), Size: int64(len(data)), SHA256: digest(data), Path: path, Mode: 0o755, Owner: "0:0"}
}

// names lists a folder.
func listed(t testing.TB, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return strings.Join(out, " ")
}

// sshdTarget is a real sshd, and a client that reaches it.
func sshdTarget(t testing.TB, change func(*Options)) *Client {
	t.Helper()
	needRoot(t)
	key := newKey(t)
	d := startDaemon(t, daemonOptions{hostKeys: []any{edwards(t)}, login: key.PublicKey()})
	o := Options{User: me(t), Key: key, Dial: book(map[string]string{peerAddress + ":22": d.address}), Deadlines: patient()}
	change(&o)
	return New(o)
}

func TestUpload(t *testing.T) {
	t.Parallel()
	conn := connect(t, sshdTarget(t, func(*Options) {}), acme1())
	for _, size := range []int{0, 1, 3 << 20} {
		for _, name := range []string{"tart-kubelet", "it's a $(name)\nof two lines", "-n", "größe"} {
			dir := openDir(t)
			path := filepath.Join(dir, name)
			write(t, path, "the old one", 0o600)
			running, err := os.Open(path) // as a process holds what it runs from
			if err != nil {
				t.Fatal(err)
			}
			data := random(size)
			u := uploadOf(data, path)
			var last int64
			u.Progress = func(sent int64) { last = sent }
			if err := conn.Upload(within(t), u); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(path)
			info, serr := os.Stat(path)
			if err != nil || serr != nil || !bytes.Equal(got, data) || info.Mode() != 0o755 || last != int64(size) {
				t.Errorf("%q: %v, %v, %d bytes of %d, mode %v, progress %d", name, err, serr, len(got), size, info.Mode(), last)
			}
			if old, err := io.ReadAll(running); err != nil || string(old) != "the old one" {
				t.Errorf("%q: what runs was overwritten: %q, %v", name, old, err)
			}
			_ = running.Close()
			if got := listed(t, dir); got != name {
				t.Errorf("left behind: %q", got)
			}
		}
	}
}

// TestUploadFails leaves what was there before, and nothing else.
func TestUploadFails(t *testing.T) {
	t.Parallel()
	c := sshdTarget(t, func(*Options) {})
	data := random(1 << 20)
	tests := []struct {
		name   string
		change func(*Upload, *Conn)
		text   string
	}{
		{"other bytes", func(u *Upload, _ *Conn) { u.SHA256 = digest([]byte("other")) }, "the bytes that arrived have the SHA-256 " + digest(data)},
		{"too few bytes", func(u *Upload, _ *Conn) { u.Source = bytes.NewReader(data[:1000]) }, "the source ends after 1000 of 1048576 bytes"},
		{"a source that fails", func(u *Upload, _ *Conn) {
			u.Source = io.MultiReader(bytes.NewReader(data[:1000]), broken{errors.New("the disk is ill")})
		}, "the disk is ill"},
		{"a cut line", func(u *Upload, c *Conn) { u.Source = io.MultiReader(bytes.NewReader(data[:500_000]), cutting{c}) }, "acme-1: command: "},
		{"no folder", func(u *Upload, _ *Conn) { u.Path += "/x" }, "its folder is not there"},
		{"a folder", func(u *Upload, _ *Conn) { u.Path = filepath.Dir(u.Path) }, "is a folder"},
		{"no owner", func(u *Upload, _ *Conn) { u.Owner = "nobody-is-called-this" }, "invalid user"},
		{"a relative path", func(u *Upload, _ *Conn) { u.Path = "x" }, `"x" is not the absolute path of a file`},
		{"a path with dots", func(u *Upload, _ *Conn) { u.Path += "/../y" }, "is not the absolute path of a file"},
		{"no digest", func(u *Upload, _ *Conn) { u.SHA256 = "" }, "64 digits"},
		{"an owner that is an option", func(u *Upload, _ *Conn) { u.Owner = "-R" }, "is no owner"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := openDir(t)
			path := filepath.Join(dir, "tart")
			write(t, path, "the old one", 0o600)
			conn := connect(t, c, acme1())
			u := uploadOf(data, path)
			tt.change(&u, conn)
			if err := conn.Upload(within(t), u); err == nil || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("error = %v, want %q", err, tt.text)
			}
			if got, err := os.ReadFile(path); err != nil || string(got) != "the old one" {
				t.Errorf("the file is %q, %v", got, err)
			}
			// The next one clears what a broken one left.
			if err := connect(t, c, acme1()).Upload(within(t), uploadOf(data, path)); err != nil {
				t.Error(err)
			}
			if got := listed(t, dir); got != "tart" {
				t.Errorf("left behind: %q", got)
			}
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

// TestUploadKilled: the file is the old one or the new one, whole, wherever the
// script ends.
func TestUploadKilled(t *testing.T) {
	data := random(1000)
	killedEverywhere(t, func(t *testing.T, l lab, at int) bool {
		path := filepath.Join(l.etc, "tart")
		write(t, path, "the old one", 0o600)
		l.stdin = fmt.Sprintf("%s\n%s\n0755\n0:0\n%d\n%s%s", testMark, digest(data), len(path), path, data)
		_, killed := l.run(at, own("upload", "root"))
		if got := l.read(path); got != "the old one" && got != string(data) {
			t.Errorf("killed at %d: the file is %q", at, head(got))
		}
		a, _ := l.run(0, own("upload", "root"))
		if got := l.read(path); got != string(data) || !strings.Contains(a.Stdout, testMark+" end 0\n") {
			t.Errorf("killed at %d: the file is %q: %+v", at, head(got), a)
		}
		if got := listed(t, l.etc); got != "tart" {
			t.Errorf("killed at %d: left behind: %q", at, got)
		}
		return killed
	})
}

// TestUploadLimit lets no file go on before as many are on their way as may.
func TestUploadLimit(t *testing.T) {
	t.Parallel()
	const limit, all = 2, 5
	c := sshdTarget(t, func(o *Options) { o.Uploads = limit })
	var now, most, first atomic.Int32
	var standing, done sync.WaitGroup
	standing.Add(limit)
	dir := openDir(t)
	for i := range all {
		done.Go(func() {
			conn, err := c.Connect(within(t), acme1())
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			data := []byte("acme")
			u := uploadOf(data, filepath.Join(dir, fmt.Sprint(i)))
			u.Source = io.MultiReader(hook(func() {
				n := now.Add(1)
				for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
				if first.Add(1) <= limit {
					standing.Done()
				}
				standing.Wait()
			}), bytes.NewReader(data[:3]), hook(func() { now.Add(-1) }), bytes.NewReader(data[3:]))
			if err := conn.Upload(within(t), u); err != nil {
				t.Error(err)
			}
		})
	}
	done.Wait()
	if got := most.Load(); got != limit {
		t.Errorf("%d files were on their way at once, want %d", got, limit)
	}
}

// hook is an empty file that does something when it is read.
type hook func()

func (h hook) Read([]byte) (int, error) {
	h()
	return 0, io.EOF
}
