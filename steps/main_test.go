package steps_test

import (
	"testing"

	"github.com/macfleet/macfleet/internal/scripttest"
)

func TestMain(m *testing.M) { scripttest.Main(m) }
