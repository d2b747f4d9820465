package conformance_test

import (
	"os"
	"testing"
	"time"

	"github.com/macfleet/macfleet/internal/conformance"
	"github.com/macfleet/macfleet/internal/maintest"
)

func TestMain(m *testing.M) { maintest.Main(m) }

// patience limits how long a test waits. It is far above what any test needs.
const patience = 60 * time.Second

// table returns all rows.
func table(t testing.TB) []conformance.Row {
	t.Helper()
	watchdog, err := os.ReadFile("../../hosts/watchdog.pl")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := conformance.Table(map[string]string{"watchdog": string(watchdog)})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}
