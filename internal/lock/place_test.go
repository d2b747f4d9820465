package lock

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestElsewhere: a record that was written in another place is refused at once, without a
// write: held or released, live or dead.
func TestElsewhere(t *testing.T) {
	t.Parallel()
	oldPlace, here := Place{"5a4d", "old (https://old.acme.dev)"}, Place{"0b1f", "prod (https://api.acme.dev)"}
	for name, tc := range map[string]struct {
		was, at Place
		from    string
		refused bool
		after   Place
	}{
		"the same":                          {was: here, at: here, after: here},
		"the same, by another name":         {was: Place{here.ID, "sam"}, at: here, after: here},
		"an older version took it":          {at: here, after: here},
		"another":                           {was: oldPlace, at: here, refused: true, after: oldPlace},
		"another, moved from there":         {was: oldPlace, at: here, from: oldPlace.ID, after: here},
		"another, moved from a third":       {was: oldPlace, at: here, from: "77aa", refused: true, after: oldPlace},
		"another, moved from here":          {was: oldPlace, at: here, from: here.ID, refused: true, after: oldPlace},
		"this one is not known":             {was: oldPlace, after: oldPlace},
		"neither is known":                  {},
		"the same, moved from another":      {was: here, at: here, from: oldPlace.ID, after: here},
		"older version, moved from another": {at: here, from: oldPlace.ID, after: here},
	} {
		for _, held := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				m := new(memory)
				ann := take(t, m, "ann", Options{Place: tc.was})
				if held {
					ann.stop() // killed: no more renewals
					<-ann.done
				} else {
					release(t, ann)
				}
				wrote, began := m.writes(), time.Now()
				bob, err := taken(m, "bob", Options{Place: tc.at, From: tc.from, Wait: time.Minute})
				var elsewhere *ElsewhereError
				if (err != nil) != tc.refused || errors.As(err, &elsewhere) != tc.refused || errors.Is(err, ErrRefused) != tc.refused {
					t.Fatalf("%s, held %t: %v", name, held, err)
				}
				if tc.refused && (m.writes() != wrote || time.Since(began) != 0 || !strings.Contains(err.Error(), oldPlace.Name) || !strings.Contains(err.Error(), here.Name)) {
					t.Errorf("%s, held %t: %v after %s and %d writes", name, held, err, time.Since(began), m.writes()-wrote)
				}
				if got := m.now().Place; got != tc.after {
					t.Errorf("%s, held %t: the record says %+v, want %+v", name, held, got, tc.after)
				}
				if bob == nil {
					return
				}
				time.Sleep(time.Minute)
				release(t, bob)
				if got := m.now().Place; got != tc.after {
					t.Errorf("%s, held %t: renewed and released, the record says %+v, want %+v", name, held, got, tc.after)
				}
			})
		}
	}
}
