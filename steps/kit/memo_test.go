package kit_test

import (
	"strings"
	"testing"

	"github.com/macfleet/macfleet/steps/kit"
)

// TestMemo keeps texts of one length apart, and renders one only once in a row.
func TestMemo(t *testing.T) {
	t.Parallel()
	var m kit.Memo[string]
	calls := 0
	upper := func(text string) string {
		calls++
		return strings.ToUpper(text)
	}
	for _, text := range []string{"ab", "ab", "cd", "ab", "", "abc", "ab"} {
		if got := m.Of(text, upper); got != strings.ToUpper(text) {
			t.Errorf("%q: %q", text, got)
		}
	}
	if calls != 5 {
		t.Errorf("%d calls, want 5", calls)
	}
}
