package autologin_test

import (
	"strings"
	"testing"

	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/stepstest"
)

// TestAutoLoginProof: a file is trusted as long as nothing that the host says speaks against it, and before
// loginwindow reads it the password in it is tried, unless that was done before.
func TestAutoLoginProof(t *testing.T) {
	t.Parallel()
	const file, set = "file 7 24 1700000100\n", "password 1700000000.5\n"
	const same = "7 24 1700000100 1700000000.5"
	for _, tc := range []struct {
		name, proof string
		code, doubt string // while the session is up
		up, down    string // what the script does about the password; down: where there is no session
	}{
		{"nothing said", "", "", "", "", "checked"},
		{"never verified, newer than the password", file + set + "note ", "", "", "", "checked"},
		{"never verified, of the same second", "file 7 24 1700000000\n" + set + "note ", "", "", "", "checked"},
		{"never verified, older than the password", "file 7 24 1699999999\n" + set + "note ", "kcpassword-unverified", "older than the password", "checked", "checked"},
		{"never verified, and no time is reported", "file 7 24 1\npassword -\nnote ", "", "", "", "checked"},
		{"verified", file + set + "note verified 1 " + same, "", "", "", "kept"},
		{"verified, and no time is reported", file + "password -\nnote verified 0 7 24 1700000100 -", "", "", "", "kept"},
		{"another file", "file 8 24 1700000100\n" + set + "note verified 1 " + same, "kcpassword-unverified", "changed since it was verified", "checked", "checked"},
		{"another size", "file 7 36 1700000100\n" + set + "note verified 1 " + same, "kcpassword-unverified", "changed since it was verified", "checked", "checked"},
		{"another password", file + "password 1700000099.5\nnote verified 1 " + same, "kcpassword-unverified", "not verified since the password was changed", "checked", "checked"},
		{"a time that is reported now", file + set + "note verified 1 7 24 1700000100 -", "kcpassword-unverified", "not verified since the password was changed", "checked", "checked"},
		{"refused", file + set + "note refused 1 " + same, "stale-kcpassword", "refused by the Mac", "given", "given"},
		{"refused, and then another password", file + "password 1700000099.5\nnote refused 1 " + same, "kcpassword-unverified", "not verified since the password was changed", "checked", "checked"},
		{"refused, and then another file", "file 7 24 1700000101\n" + set + "note refused 1 " + same, "kcpassword-unverified", "changed since it was verified", "checked", "checked"},
		{"a try that was interrupted", file + set + "note trying 1 " + same, "kcpassword-unverified", "not verified: an earlier try was interrupted", "checked", "checked"},
		{"two tries that were interrupted", file + set + "note trying 2 " + same, "stale-kcpassword", "refused by the Mac", "given", "given"},
		{"a note of another version", file + set + "note later 1 2 3", "", "", "", "checked"},
	} {
		m := fine
		m.proof = tc.proof
		f := m.look(t)
		code, does, field := "", "", ""
		for _, c := range f.Changes {
			code, does, field = c.Reason.Code.String(), c.Command.Args[3], c.Fields[0].Before
			if c.Command.Args[2] != "stay" || c.Disruption != plan.NoDisruption {
				t.Errorf("%s: it disturbs the session: %+v", tc.name, c)
			}
		}
		stepstest.Expect(t, tc.name, []string{tc.code, tc.up}, []string{code, does})
		if tc.doubt != "" && field != "present, "+tc.doubt || strings.Contains(f.Facts, "170000") {
			t.Errorf("%s: field %q; facts %s", tc.name, field, f.Facts)
		}
		m.session, m.screen = false, ""
		f = m.look(t)
		c := f.Changes[0]
		input := map[string]plan.InputKind{"kept": plan.NoInput, "checked": plan.AutoLoginCheck, "given": plan.AutoLogin}[tc.down]
		if c.Command.Args[2] != "kick" || c.Command.Args[3] != tc.down || c.Input != input {
			t.Errorf("%s, no session: %v, input %q", tc.name, c.Command.Args, c.Input)
		}
		want := "no-gui-session" // which is worse than a doubt
		if tc.code == "stale-kcpassword" {
			want = tc.code
		}
		if c.Reason.Code.String() != want || !strings.Contains(c.Reason.Text, tc.doubt) && want != tc.code {
			t.Errorf("%s, no session: %+v", tc.name, c.Reason)
		}
	}
}
