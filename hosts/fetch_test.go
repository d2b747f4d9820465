package hosts

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet"
)

// curlStub answers with the file "served", in two parts where "breaks" exists,
// and notes its arguments.
const curlStub = `echo "$*" >>STATE/curl
while [ $# -gt 0 ]; do
  case $1 in -o) out=$2; shift ;; esac
  shift
done
if [ -e STATE/code ]; then
  read -r code <STATE/code
  echo "curl: ($code) it went wrong" >&2
  exit "$code"
fi
have=0
if [ -f "$out" ]; then have=$(wc -c <"$out"); fi
if [ -e STATE/breaks ]; then
  rm STATE/breaks
  head -c 400 STATE/served >"$out"
  echo "curl: (18) transfer closed" >&2
  exit 18
fi
tail -c +$((have + 1)) STATE/served >>"$out"
`

// fetching is a host that downloads.
type fetching struct {
	*lines
	conn *Conn
	dir  string
	*parcel
}

func newFetching(t *testing.T) fetching {
	n := newLines(t)
	n.tool("curl", curlStub)
	f := fetching{n, nil, filepath.Join(n.etc, "artifacts"), deliveryOf(random(1000))}
	f.Artifact.Source, f.Artifact.Fetch = "https://releases.acme.dev/it's $(a) tool", fleet.FetchHost
	f.conn = connect(t, n.client(func(o *Options) { o.ArtifactFolder = func(string) string { return f.dir } }), acme1())
	n.Set("served", string(f.data))
	return f
}

func (f fetching) deliver(t *testing.T) error {
	_, err := f.conn.Deliver(within(t), f.Delivery, nil) // nothing is sent
	return err
}

func (f fetching) arrived(t *testing.T) {
	t.Helper()
	if got := f.read(f.dir, f.Artifact.SHA256); got != string(f.data) || listed(t, f.dir) != f.Artifact.SHA256 {
		t.Errorf("%d bytes arrived; the folder holds %s", len(got), listed(t, f.dir))
	}
}

// TestFetch lets the host download, and resume what was interrupted.
func TestFetch(t *testing.T) {
	t.Parallel()
	f := newFetching(t)
	f.Set("breaks", "")
	wantError(t, f.deliver(t), "download-failed", Delivering, "artifact.kubelet: curl: (18) transfer closed")
	is(t, "kept of what was interrupted", f.read(f.dir, "."+f.Artifact.SHA256+".download"), string(f.data[:400]))
	must(t, f.deliver(t))
	f.arrived(t)
	asked := f.read(f.State, "curl")
	if strings.Count(asked, "\n") != 2 || !strings.Contains(asked, "--url "+f.Artifact.Source+"\n") {
		t.Errorf("curl was called with %q", asked)
	}
	if err := f.deliver(t); err != nil || f.read(f.State, "curl") != asked {
		t.Errorf("what exists was downloaded again: %v", err)
	}
	if sent := f.conn.client.Stats().Sent; sent > 100_000 {
		t.Errorf("%d bytes were sent", sent)
	}
}

// TestFetchWrongBytes says both digests, and keeps none of the bytes.
func TestFetchWrongBytes(t *testing.T) {
	t.Parallel()
	f := newFetching(t)
	f.Set("served", "other bytes")
	err := f.deliver(t)
	wantError(t, err, "wrong-artifact", Delivering, digest([]byte("other bytes"))+", not "+f.Artifact.SHA256)
	is(t, "left behind", listed(t, f.dir), "")
	// What was interrupted may be the beginning of another file: then from the start.
	f.Set("served", string(f.data))
	write(t, filepath.Join(f.dir, "."+f.Artifact.SHA256+".download"), "other", 0o600)
	must(t, f.deliver(t))
	f.arrived(t)
}

func TestFetchFails(t *testing.T) {
	t.Parallel()
	f := newFetching(t)
	part := filepath.Join(f.dir, "."+f.Artifact.SHA256+".download")
	for code, want := range map[string]string{"6": "download-failed", "22": "download-failed", "23": "disk-full"} {
		write(t, part, string(f.data[:100]), 0o600)
		f.Set("code", code+"\n")
		wantError(t, f.deliver(t), want, Delivering, "artifact.kubelet: curl: ("+code+") it went wrong")
		if code == "23" && listed(t, f.dir) != "" {
			t.Errorf("left behind on a full disk: %q", listed(t, f.dir))
		}
	}
}

// TestFetchWhole: a part that is whole already needs no download.
func TestFetchWhole(t *testing.T) {
	t.Parallel()
	f := newFetching(t)
	write(t, filepath.Join(f.dir, "."+f.Artifact.SHA256+".download"), string(f.data), 0o600)
	if err := f.deliver(t); err != nil || f.read(f.State, "curl") != "" {
		t.Errorf("%v; curl was called with %q", err, f.read(f.State, "curl"))
	}
	f.arrived(t)
}

// TestFetchKilled: there is no file of the artifact's name, or the whole one,
// wherever the script ends; the next one brings it.
func TestFetchKilled(t *testing.T) {
	data := random(1000)
	killedEverywhere(t, func(t *testing.T, l lab, at int) bool {
		dir := filepath.Join(l.etc, "artifacts")
		l.tool("curl", curlStub)
		l.Set("served", string(data))
		fetch := own("artifact-fetch", "root", dir, digest(data), "https://releases.acme.dev/tool")
		_, killed := l.run(at, fetch)
		path := filepath.Join(dir, digest(data))
		if got := l.read(path); got != "" && got != string(data) {
			t.Errorf("killed at %d: the file is %q", at, head(got))
		}
		if a, _ := l.run(0, fetch); a.Exit != 0 || l.read(path) != string(data) || listed(t, dir) != digest(data) {
			t.Errorf("killed at %d: %+v, the folder holds %s", at, a, listed(t, dir))
		}
		return killed
	})
}
