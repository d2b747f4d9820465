package conformance_test

import (
	"os"
	"testing"
	"time"

	"github.com/macfleet/macfleet/internal/conformance"
	"github.com/macfleet/macfleet/internal/maintest"
)

func TestMain(m *testing.M) { maintest.Main(m) }

// patience bounds what a test waits for. It is far above what anything takes.
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
