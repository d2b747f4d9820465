package secret_test

import (
	"strings"
	"testing"

	"github.com/macfleet/macfleet/internal/secret"
)

func TestSeal(t *testing.T) {
	t.Parallel()
	v := value(t, "hunter2 ü'$(id)")
	one, err := v.Seal()
	two, other := v.Seal()
	if one == two || err != nil || other != nil {
		t.Errorf("two seals of one password are equal, so the salt is missing: %v, %v", err, other)
	}
	if !one.Matches(v) || !two.Matches(v) {
		t.Error("a seal does not match its own password")
	}
	if one.Matches(value(t, "hunter2 ü'$(id) ")) {
		t.Error("a seal matches another password")
	}
	if strings.ContainsAny(string(one), " \n\t") || strings.Contains(string(one), "hunter2") {
		t.Errorf("the seal is %q", one)
	}
}

// TestNoSeal reads what a person or a broken disk may leave in a seal's place.
func TestNoSeal(t *testing.T) {
	t.Parallel()
	v := value(t, "hunter2")
	good, err := v.Seal()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []secret.Seal{"", "hunter2", "scrypt:", "scrypt:hunter2", good[:len(good)-1], good + "A", "bcrypt:" + good[len("scrypt:"):]} {
		if text.Matches(v) {
			t.Errorf("%q matches", text)
		}
	}
}
