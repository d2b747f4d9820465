package mac

import (
	"bytes"
	"io"
	"io/fs"
	"strings"
	"testing"
)

type file struct{ *bytes.Reader }

func (file) Close() error { return nil }

// internet is one host with one file.
func internet(address string) (io.ReadSeekCloser, error) {
	switch {
	case address == "https://dl.acme.dev/tool":
		return file{bytes.NewReader([]byte("0123456789"))}, nil
	case strings.HasPrefix(address, "https://dl.acme.dev/"):
		return nil, fs.ErrNotExist
	}
	return nil, ErrNoHost
}

func TestDownloads(t *testing.T) {
	t.Parallel()
	const get = "cd /tmp; curl -fsSL --connect-timeout 5 --speed-limit 1000 --speed-time 30 -C - -o t -w '%{http_code}\\n' https://dl.acme.dev/tool"
	for _, c := range []struct {
		name, how string
		rows      []row
		came      int64
	}{
		{"steady", "steady", []row{
			{script: get + "; cat t", stdout: "200\n0123456789"},
			{script: get + "; cat t", stdout: "416\n0123456789"},
			{script: "cd /tmp; printf 0123 >t; " + get + "; cat t", stdout: "206\n0123456789"},
			{script: "curl -s https://dl.acme.dev/tool", stdout: "0123456789"},
			{script: "curl -fsS https://dl.acme.dev/none", stderr: "curl: (22) The requested URL returned error: 404\n", exit: 22},
			{script: "curl -fsS https://missing.acme.dev/x", stderr: "curl: (6) Could not resolve host: missing.acme.dev\n", exit: 6},
			{script: "curl -fs https://127.0.0.1/x", exit: 7},
			{script: "curl -fsSI https://dl.acme.dev/tool | grep -c 'content-length: 10'", stdout: "1\n"},
			{script: "curl --data x https://dl.acme.dev/tool", stderr: "curl: option not modelled: --data\n", exit: 64},
		}, 10 + 6 + 10},
		{"it breaks once", "breaks-once", []row{
			{script: get, stdout: "200\n", stderr: "curl: (18) transfer closed with 5 bytes remaining to read\n", exit: 18},
			{script: get + "; cat t", stdout: "206\n0123456789"},
		}, 10},
		{"other bytes", "wrong-bytes", []row{{script: get + "; cat t", stdout: "200\n1032547698"}}, 10},
		{"too slow", "slow", []row{
			{script: get, stdout: "200\n", stderr: "curl: (28) Operation too slow. Less than 1000 bytes/sec transferred the last 30 seconds\n", exit: 28}}, 0},
		{"gone", "gone", []row{{script: get, stdout: "404\n", stderr: "curl: (22) The requested URL returned error: 404\n", exit: 22}}, 0},
		{"it is reset again and again", "resets", []row{
			{script: get, stdout: "200\n", stderr: "curl: (56) Recv failure: Connection reset by peer\n", exit: 56},
			{script: get, stdout: "206\n", stderr: "curl: (56) Recv failure: Connection reset by peer\n", exit: 56},
			{script: get + " 2>/dev/null; " + get + " 2>/dev/null; cat t", stdout: "206\n206\n012345678"},
			{script: get + "; cat t", stdout: "206\n0123456789"},
		}, 10},
		{"refused", "refused", []row{{script: "curl -fs https://dl.acme.dev/tool", exit: 7}}, 0},
		{"no ranges", "no-ranges", []row{{script: "cd /tmp; printf 01 >t; curl -fs -C - -o t https://dl.acme.dev/tool", exit: 33}}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			m.Connect(Outside{Download: internet})
			ok(t, m.SetSwitch(downloadSwitch, c.how))
			for _, want := range c.rows {
				stdout, stderr, exit := run(t, m, "m1", want.script)
				equal(t, row{want.script, stdout, stderr, exit}, want)
			}
			if got, err := m.Downloaded(); err != nil || got != c.came {
				t.Errorf("downloaded %d, %v, want %d", got, err, c.came)
			}
		})
	}
}

func TestFullDisk(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.Connect(Outside{Download: internet})
	if got := must(t, m, "m1", "df -k / | tail -n 1 | tr -s ' ' | cut -d ' ' -f 4,9"); !strings.HasPrefix(got, "3906") {
		t.Errorf("a new disk: %s", got)
	}
	ok(t, m.SetFree(4096))
	for _, c := range []row{
		{script: "df -k /tmp | tail -n 1 | tr -s ' ' | cut -d ' ' -f 4,9", stdout: "4 /System/Volumes/Data\n"},
		{script: "cd /tmp; dd if=/etc/pf.conf of=a bs=1 count=4000 2>/dev/null; cat /etc/pf.conf /etc/pf.conf /etc/pf.conf >b; stat -f %z b >&2",
			stderr: "cat: stdout: No space left on device\n"},
		{script: "cd /tmp; printf x >c", stderr: "sh: c: No space left on device\n", exit: 1},
		{script: "cd /tmp; curl -fsS -o d https://dl.acme.dev/tool", stderr: "curl: (23) client returned ERROR on write, 16384 bytes received: d: No space left on device\n", exit: 23},
		{script: "cd /tmp; cp /etc/sudoers e", stderr: "cp: /etc/sudoers: No space left on device\n", exit: 1},
		{script: "cd /tmp; rm a b; cp /etc/sudoers e && echo fine", stdout: "fine\n"},
	} {
		stdout, stderr, exit := run(t, m, "root", c.script)
		if strings.Contains(c.script, "stat -f") {
			stderr, _, _ = strings.Cut(stderr, "device\n")
			stderr += "device\n"
		}
		equal(t, row{c.script, stdout, stderr, exit}, c)
	}
}
