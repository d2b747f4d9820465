package steps_test

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps"
	"github.com/macfleet/macfleet/steps/kcpassword"
)

// TestInput: lines are all that a script reads, and what they hold is the password, whatever it holds itself.
func TestInput(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[^\x00\r\n]{1,40}`).Draw(t, "password")
		password, err := secret.New(text)
		if err != nil {
			t.Skip("no password")
		}
		if plain, err := steps.Input(steps.InputFor{Kind: plan.LoginPassword}, password); err != nil || plain.Reveal() != text+"\n" {
			t.Fatalf("%q, %v", plain.Reveal(), err)
		}
		for _, in := range []steps.InputFor{{Kind: plan.AutoLogin}, {Kind: plan.AutoLoginCheck}, {Kind: plan.AutoLoginCheck, Refused: true}} {
			file, err := steps.Input(in, password)
			word, rest, _ := strings.Cut(file.Reveal(), " ")
			second, end, line := strings.Cut(rest, "\n")
			if err != nil || (word == "refused") != in.Refused || !line || end != "" {
				t.Fatalf("%q, %v", file.Reveal(), err)
			}
			inFile(t, second, text)
		}
	})
}

// inFile checks that a text is the file of a password in base64.
func inFile(t *rapid.T, in64, password string) {
	content, err := base64.StdEncoding.DecodeString(in64)
	if err != nil {
		t.Fatal(err)
	}
	if want, err := kcpassword.Encode([]byte(password)); err != nil || !bytes.Equal(content, want) {
		t.Fatalf("% x, want % x, %v", content, want, err)
	}
}

func TestInputRefuses(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		kind plan.InputKind
		text string
		want string
	}{
		{plan.NoInput, "hunter2", "no step reads"},
		{"unknown-kind", "hunter2", "no step reads"},
		{plan.Admission, "hunter2 x", "spaces"},
		{plan.LoginPassword, "hunter2\n", "line break"},
		{plan.AutoLogin, "hunter2\r", "line break"},
		{plan.AutoLogin, "hunter2\x00", "NUL"},
		{plan.AutoLogin, "<sealed>hunter2", "placeholder"},
	} {
		password, err := secret.New(tc.text)
		if err != nil {
			t.Fatal(err)
		}
		got, err := steps.Input(steps.InputFor{Kind: tc.kind}, password)
		if err == nil || !got.IsZero() || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s of %q: %v; want an error about %q", tc.kind, tc.text, err, tc.want)
		}
	}
	if got, err := steps.Input(steps.InputFor{Kind: plan.AutoLogin}, secret.Value{}); err == nil || !got.IsZero() {
		t.Error("no password is none")
	}
}
