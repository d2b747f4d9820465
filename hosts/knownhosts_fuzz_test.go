package hosts

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/macfleet/macfleet/plan"
)

// FuzzKnownHosts reads any bytes as the file of pins: what it accepts comes back
// when the file is rewritten, and what it cannot read stays as it is.
func FuzzKnownHosts(f *testing.F) {
	const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEY7C0nXW2jYkDsCCL1X1gpUN6pYTcHsvXdTOJ1ha1pW"
	const line = "acme-1,id-1 " + key + " since=2026-03-04T05:06:07Z"
	for _, seed := range []string{
		"", "\n\n", "# made by hand\n", line, line + "\n" + line + "\n", line + "\r\n", "  " + line + "  ", line + "\x00", "\xff\xfe" + line,
		line + " serial=C0700001", line + " serial=C0700001 unfinished",
		"acme-1 " + key + " since=2026-03-04T05:06:07Z", "acme-1,id-1,x " + key + " since=2026-03-04T05:06:07Z", "acme-1,id-1 " + key,
		"@revoked " + line, "@cert-authority " + line, "|1|c2FsdA==|aGFzaA==,id-1 " + key + " since=2026-03-04T05:06:07Z",
		"acme-1,!id-1 " + key + " since=2026-03-04T05:06:07.5Z", "acme-1,id-1 " + key + " since=2026-03-04T05:06:07+02:00",
		"#,id-1 " + key + " since=2026-03-04T05:06:07Z", "acme-1,id-1 " + key + " 0000-01-01T00:00:00Z",
		"@,id-1 " + key + " since=2026-03-04T05:06:07Z", ",id-1 " + key + " since=9999-12-31T23:59:59-23:59",
	} {
		f.Add([]byte(seed))
	}
	dir := f.TempDir()
	added := plan.Pin{Name: "acme-9", ServerID: "id-9", Key: key, Since: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)}
	f.Fuzz(func(t *testing.T, text []byte) {
		k := KnownHosts{Path: filepath.Join(dir, "known_hosts")}
		must(t, os.WriteFile(k.Path, text, 0o600))
		before, err := k.All()
		updated := k.Update(put(added))
		if err != nil {
			if after, rerr := os.ReadFile(k.Path); updated == nil || rerr != nil || string(after) != string(text) {
				t.Errorf("a file that cannot be read was replaced: %v, %v, %q", updated, rerr, after)
			}
			return
		}
		if updated != nil {
			t.Fatal(updated)
		}
		want := append(before, added)
		slices.SortFunc(want, func(a, b plan.Pin) int {
			return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ServerID, b.ServerID))
		})
		after, err := k.All()
		if err != nil {
			t.Fatalf("it cannot read what it wrote: %v", err)
		}
		if diff := gocmp.Diff(want, after); diff != "" {
			t.Errorf("pins (-before +after):\n%s", diff)
		}
	})
}
