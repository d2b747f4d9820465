package engine_test

import (
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"sync"
	"testing"

	"github.com/macfleet/macfleet/steps/kcpassword"
)

// forms are all shapes in which a password could get out.
func forms(t *testing.T, password string) map[string]string {
	t.Helper()
	encoded, err := kcpassword.Encode([]byte(password))
	must(t, err)
	one, two, big := sha1.Sum([]byte(password)), sha256.Sum256([]byte(password)), sha512.Sum512([]byte(password))
	return map[string]string{"the password": password, "in base64": base64.StdEncoding.EncodeToString([]byte(password)),
		"in hex": hex.EncodeToString([]byte(password)), "as in kcpassword": string(encoded), "as in kcpassword, in base64": base64.StdEncoding.EncodeToString(encoded)[:12],
		"as in kcpassword, in hex": hex.EncodeToString(encoded)[:16], "by SHA-1": hex.EncodeToString(one[:]), "by SHA-256": hex.EncodeToString(two[:]), "by SHA-512": hex.EncodeToString(big[:])}
}

// TestPasswordsShowNowhere sets a host up and lets its session be repaired, and
// checks every command line and environment on the host meanwhile, at every
// event and result, and at the marker and its digests.
func TestPasswordsShowNowhere(t *testing.T) {
	t.Parallel()
	declares(t, 5, "one password is followed through all that uses it")
	w, _ := world(t, 3)
	e := run(t, w, hostCore("production", 1))
	host := planned(t, e).Hosts[0].Server.ID
	machine := macOf(t, w, host)
	var mu sync.Mutex
	var seen strings.Builder
	machine.Watch(func(argv []string, environ map[string]string) {
		mu.Lock()
		defer mu.Unlock()
		seen.WriteString(strings.Join(argv, "\x00") + "\n")
		for name, value := range environ {
			seen.WriteString(name + "=" + value + "\n")
		}
	})
	converges(t, e)
	for _, incident := range []string{"sealed-kcpassword", "no-gui-session", "stale-kcpassword-no-session"} {
		inject(t, w, host, incident)
		converges(t, e)
	}
	if err := machine.Remove("/etc/macfleet/kcpassword"); err != nil { // the host tries the password in the file itself
		t.Fatal(err)
	}
	must(t, w.Inject(host, "no-gui-session"))
	e.Passwords = nil
	converges(t, e)
	marker, err := machine.ReadFile("/etc/macfleet/host.json")
	must(t, err)
	seen.Write(marker)
	if seen.Len() < 10_000 {
		t.Fatalf("only %d bytes were seen", seen.Len())
	}
	password, err := machine.Password()
	must(t, err)
	for form, text := range forms(t, password) {
		if strings.Contains(seen.String(), text) {
			t.Errorf("%s was expected to be seen", form)
		}
	}
}
