package mac

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"strings"
	"testing"
)

// archive packs entries: a name that ends in a slash is a folder, one with an arrow a link.
func archive(t testing.TB, entries ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b)
	w := tar.NewWriter(zipped)
	for _, entry := range entries {
		head := &tar.Header{Name: entry, Typeflag: tar.TypeReg, Mode: 0o755, Size: 1}
		if name, target, ok := strings.Cut(entry, " -> "); ok {
			head = &tar.Header{Name: name, Linkname: target, Typeflag: tar.TypeSymlink, Mode: 0o777}
		} else if strings.HasSuffix(entry, "/") {
			head.Typeflag, head.Size = tar.TypeDir, 0
		}
		ok(t, w.WriteHeader(head))
		if head.Size > 0 {
			if _, err := w.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
		}
	}
	ok(t, w.Close())
	ok(t, zipped.Close())
	return b.Bytes()
}

func TestTarStaysInItsFolder(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	for _, c := range []struct{ entries, stderr string }{
		{"../out", "../out: Path contains '..'\n"},
		{"a/../../out", "a/../../out: Path contains '..'\n"},
		{"l -> /etc|l/out", "l/out: Cannot extract through symlink l\n"},
		{"d/|d/l -> ..|d/l/l/out", "d/l/l/out: Cannot extract through symlink d/l\n"},
	} {
		ok(t, m.WriteFile("/tmp/a.tar.gz", archive(t, strings.Split(c.entries, "|")...), 0, 0, 0o644))
		_, stderr, exit := run(t, m, "root", "rm -rf /tmp/in; mkdir -p /tmp/in/sub && tar -xzf /tmp/a.tar.gz -C /tmp/in/sub")
		if exit != 1 || stderr != c.stderr+"tar: Error exit delayed from previous errors.\n" {
			t.Errorf("%s: %d, %q", c.entries, exit, stderr)
		}
	}
	equal(t, must(t, m, "root", "ls /etc/out /tmp/out /tmp/in/out 2>/dev/null || true"), "", "files outside")
	ok(t, m.WriteFile("/tmp/a.tar.gz", archive(t, "/etc/out", "d/", "d/l -> f", "d/f"), 0, 0, 0o644))
	if got := must(t, m, "root", "cd /tmp && tar xzf a.tar.gz -C in && cat in/etc/out in/d/l && readlink in/d/l && ls in/d"); got != "xxf\nf\nl\n" {
		t.Errorf("a valid archive: %q", got)
	}
}

// FuzzUnpack checks that no archive writes outside the folder, and that none crashes the machine.
func FuzzUnpack(f *testing.F) {
	f.Add(archive(f, "a/", "a/f", "l -> a"))
	f.Add(archive(f, "../out", "/out"))
	f.Add([]byte("nonsense"))
	m := newMachine(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		ok(t, m.WriteFile("/tmp/a.tar", data, 0, 0, 0o644))
		before := must(t, m, "root", "ls -a / /etc /tmp")
		_, _, exit := run(t, m, "root", "rm -rf /tmp/in; mkdir /tmp/in && cd /tmp/in && tar -xf ../a.tar")
		if exit != 0 && exit != 1 {
			t.Errorf("exit %d", exit)
		}
		must(t, m, "root", "rm -rf /tmp/in")
		equal(t, must(t, m, "root", "ls -a / /etc /tmp"), before)
	})
}
