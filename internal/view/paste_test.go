package view

import (
	"strings"
	"testing"
)

// TestCommandsHaveTheReadersFlags: what is printed works pasted in the same folder.
func TestCommandsHaveTheReadersFlags(t *testing.T) {
	t.Parallel()
	commands := []string{"apply", "plan", "hosts", "hold", "init"}
	flags := []string{"-C ..", "-e production", "--sandbox"}
	for _, test := range []struct{ text, want string }{
		{"fix: macfleet apply --on name=00001", "fix: macfleet -C .. -e production --sandbox apply --on name=00001"},
		{"macfleet hold X; then macfleet apply", "macfleet -C .. -e production --sandbox hold X; then macfleet -C .. -e production --sandbox apply"},
		{"macfleet plan or macfleet apply -e test", "macfleet -C .. -e production --sandbox plan or macfleet -C .. --sandbox apply -e test"},
		{"macfleet -e production apply", "macfleet -e production apply"},
		{"macfleet holds no reference; sudo rm -r /etc/macfleet apply", "macfleet holds no reference; sudo rm -r /etc/macfleet apply"},
	} {
		var b strings.Builder
		text := NewText(&b, 0, false)
		text.Repeat(flags, commands)
		text.Say(test.text)
		text.Table([][]string{{"A", "B"}, {"1", test.text}})
		if want := test.want + "\nA  B\n1  " + test.want + "\n"; b.String() != want {
			t.Errorf("%s:\n%s\nwant\n%s", test.text, b.String(), want)
		}
	}
	var b strings.Builder
	text := NewText(&b, 40, false)
	text.Repeat(flags, commands)
	text.Say("fix: macfleet init cluster --moved-from-cluster UID, then macfleet plan")
	const want = "fix:\nmacfleet -C .. -e production --sandbox init cluster --moved-from-cluster UID,\nthen\nmacfleet -C .. -e production --sandbox plan\n"
	if b.String() != want {
		t.Errorf("a command is broken:\n%s\nwant\n%s", b.String(), want)
	}
}
