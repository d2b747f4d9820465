package lists_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/macfleet/macfleet/plan/lists"
)

// TestJudge multiplies what hosts can say with what a list can have, for up to four hosts of each kind.
func TestJudge(t *testing.T) {
	t.Parallel()
	cases := 0
	for _, realm := range []string{"", "here"} {
		for n := range 5 * 5 * 5 * 5 {
			there, deleted, silent, elsewhere := n%5, n/5%5, n/25%5, n/125
			var said []lists.Said
			add := func(n int, id, realm string) {
				for i := range n {
					said = append(said, lists.Said{Host: fmt.Sprintf("%s-%d", id, i), ID: id, Realm: realm})
				}
			}
			add(there, "there", "here")
			add(deleted, "deleted", "here")
			add(silent, "silent", "")
			add(elsewhere, "elsewhere", "there")
			v := lists.Judge(realm, []string{"there", "another"}, said)

			// The oracle is the table of docs/decisions/0051-lists.md.
			missing, all := deleted+silent+elsewhere, len(said)
			want := lists.Matching
			switch {
			case all == 0:
				want = lists.Unproven
			case there == 0 && (realm == "" || deleted == 0):
				want = lists.Foreign
			case missing > 2 && 3*missing > all:
				want = lists.Lacking
			}
			if v.State != want || v.Of != all || len(v.Missing) != missing || !slices.IsSorted(v.Missing) || v.Believed() != (want == lists.Unproven || want == lists.Matching) ||
				(v.Realm == "there") != (realm != "" && elsewhere > 0) {
				t.Errorf("list of %q, %d there, %d deleted, %d silent, %d elsewhere: %+v, want state %d", realm, there, deleted, silent, elsewhere, v, want)
			}
			cases++
		}
	}
	if cases != 1250 {
		t.Error(cases)
	}
	// A tailnet got another name, which a host has not learned yet.
	v := lists.Judge("here", []string{"7"}, []lists.Said{{ID: "7", Realm: "there"}})
	if v.State != lists.Matching || v.Realm != "" {
		t.Errorf("%+v", v)
	}
}
