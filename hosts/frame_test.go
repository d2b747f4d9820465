package hosts

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

const testMark = "0123456789abcdef0123456789abcdef"

// asked makes questions of ids.
func asked(ids ...string) []question {
	var out []question
	for _, id := range ids {
		out = append(out, question{id: id})
	}
	return out
}

// spell writes out marks as exchange.sh prints them, of which angle brackets are short forms.
func spell(s string) string {
	return strings.NewReplacer("<host ", "\n"+testMark+" host ", "<begin ", "\n"+testMark+" begin ",
		"<end ", "\n"+testMark+" end ", "<done", "\n"+testMark+" done", ">", "\n").Replace(s)
}

func TestParse(t *testing.T) {
	t.Parallel()
	type facts = map[string]inventory.Seen[plan.Answer]
	cutOff := unread("the answer was truncated")
	foreign := strings.ReplaceAll(spell("<begin b>no<end 0>"), testMark, "f"+testMark[1:])
	const words = "watchdog: stopped after 10 s\n"
	for _, tt := range []struct {
		name, stdout, stderr string
		want                 facts
		state                string // root unless the host is another user's; whole unless the last mark is missing
	}{
		{"nothing asked", "<host 0><done>", "", facts{}, "root whole"},
		{"two answers", "<host 0><begin a>one\n<end 0><begin b>two<end 3><done>", "<begin a><end 0><begin b>oh\n<end 3>",
			facts{"a": said(0, "one\n", ""), "b": said(3, "two", "oh\n")}, "root whole"},
		{"not root", "<host 501><done>", "", facts{}, "whole"},
		{"a user id that begins with 0 is not root's", "<host 01><done>", "", facts{}, "whole"},
		{"empty answers", "<host 0><begin a><end 0><begin b>\n<end 0><done>", "<begin a><end 0><begin b><end 0>",
			facts{"a": said(0, "", ""), "b": said(0, "\n", "")}, "root whole"},
		{"noise before, between and after", "Welcome to acme\n% <host 0>x<begin a>one<end 0>job 7 ended<begin b>two<end 0>mail<done>bye",
			"tty: not one<begin a>e<end 0>\nwarning\n<begin b><end 0>logout", facts{"a": said(0, "one", "e"), "b": said(0, "two", "")}, "root whole"},
		{"noise with CRLF", "motd\r\n<host 0><begin a>one\r\n<end 0><done>", "<begin a><end 0>", facts{"a": said(0, "one\r\n", "")}, "root whole"},
		{"a question that has no frame", "<host 0><begin b>two<end 0><done>", "<begin b><end 0>", facts{"a": cutOff, "b": said(0, "two", "")}, "root whole"},
		{"a frame that no one asked for", "<host 0><begin z><end 0><begin a>one<end 0><done>", "<begin a><end 0>", facts{"a": said(0, "one", "")}, "root whole"},
		{"interrupted in an answer", "<host 0><begin a>one<end 0><begin b>tw", "<begin a><end 0><begin b>", facts{"a": said(0, "one", ""), "b": cutOff}, "root"},
		{"interrupted in a begin mark", "<host 0><begin a", "", facts{"a": cutOff}, "root"},
		{"interrupted in an end mark", "<host 0><begin a>one<end 0", "<begin a><end 0>", facts{"a": cutOff}, "root"},
		{"last mark missing", "<host 0><begin a>one<end 0>", "<begin a><end 0>", facts{"a": said(0, "one", "")}, "root"},
		{"last mark interrupted", "<host 0><done", "", facts{}, "root"},
		{"an end mark is missing between two answers", "<host 0><begin a>one<begin b>two<end 0><done>", "<begin a><end 0><begin b><end 0>",
			facts{"a": cutOff, "b": said(0, "two", "")}, "root whole"},
		{"frame only on stdout", "<host 0><begin a>one<end 0><done>", "", facts{"a": cutOff}, "root whole"},
		{"frame only on stderr", "<host 0><done>", "<begin a><end 0>", facts{"a": cutOff}, "root whole"},
		{"the streams disagree on the exit code", "<host 0><begin a>one<end 0><done>", "<begin a><end 1>", facts{"a": cutOff}, "root whole"},
		{"needs root", "<host 501><begin a><end needs-root><begin b>two<end 0><done>", "<begin a><end needs-root><begin b><end 0>",
			facts{"a": unread("needs root"), "b": said(0, "two", "")}, "whole"},
		{"stopped by the watchdog", "<host 0><begin a>part<end 124><done>", "<begin a>" + words + "<end 124>", facts{"a": unread(stoppedByWatchdog)}, "root whole"},
		{"its own exit code of 124", "<host 0><begin a>all<end 124><done>", "<begin a>oh<end 124>", facts{"a": said(124, "all", "oh")}, "root whole"},
		{"the watchdog's words and another exit code", "<host 0><begin a>all<end 0><done>", "<begin a>" + words + "<end 0>",
			facts{"a": said(0, "all", words)}, "root whole"},
		{"an exit code that is none", "<host 0><begin a><end zero><done>", "<begin a><end zero>",
			facts{"a": unread(`the answer has "zero" in place of an exit code`)}, "root whole"},
		{"an empty exit code", "<host 0><begin a><end ><done>", "<begin a><end >", facts{"a": unread(`the answer has "" in place of an exit code`)}, "root whole"},
		{"marks of another exchange in an answer", "<host 0><begin a>" + foreign + "<end 0><begin b>two<end 0><done>", "<begin a><end 0><begin b><end 0>",
			facts{"a": said(0, foreign, ""), "b": said(0, "two", "")}, "root whole"},
		{"the mark in a line that is no mark", "<host 0><begin a>x " + testMark + " end 0\n" + testMark + " ends 0\n<end 0><done>", "<begin a>" + testMark + "<end 0>",
			facts{"a": said(0, "x "+testMark+" end 0\n"+testMark+" ends 0\n", testMark)}, "root whole"},
	} {
		got, err := parse(testMark, spell(tt.stdout), spell(tt.stderr), asked(slices.Collect(maps.Keys(tt.want))...))
		must(t, err)
		is(t, tt.name, got, reply{root: strings.Contains(tt.state, "root"), whole: strings.Contains(tt.state, "whole"), facts: tt.want})
	}
}

func TestParseWithoutFirstMark(t *testing.T) {
	t.Parallel()
	for _, stdout := range []string{"", "This account is currently not available.\n", "\nffff host 0\n", "\n" + testMark + " host 0", testMark + " host 0\n"} {
		r, err := parse(testMark, stdout, spell("<begin a><end 0>"), asked("a"))
		if err == nil || r.root || r.whole || len(r.facts) > 0 {
			t.Errorf("parse(%q) = %+v, %v, want only an error", stdout, r, err)
		}
	}
}

// FuzzParse feeds streams as a host could send them. Words in angle brackets
// stand for marks, so that the fuzzer does not have to guess the random part.
func FuzzParse(f *testing.F) {
	seeds := []struct{ stdout, stderr string }{
		{"", ""},
		{"motd\n<host 0>x<begin a>one<end 0>\n<begin b><end 1><done>", "<begin a><end 0>e<begin b>oh<end 1>"},
		{"<host 0><begin a>one<begin b>two<end 0><done>", "<begin a><end 0><begin b><end 0>"},
		{"<host 501><begin a><end needs-root><done>", "<begin a><end needs-root>"},
		{"<host 0><begin a>part<end 124><done>", "<begin a>watchdog: stopped after 1 s\n<end 124>"},
		{"<host 0><begin a><begin a><end 0><end 0>", "<begin a><end 0><begin a>"},
		{"<host 0><begin a>\n\n<end 99999999999999999999><done>", "<begin a><end 99999999999999999999>"},
		{"<host ><begin ><end ><done><host 0>", "<begin a>"},
	}
	for _, s := range seeds {
		f.Add(s.stdout, s.stderr)
	}
	f.Fuzz(func(t *testing.T, stdout, stderr string) {
		stdout, stderr = spell(stdout), spell(stderr)
		r, err := parse(testMark, stdout, stderr, asked("a", "b"))
		if err != nil {
			return
		}
		if len(r.facts) != 2 {
			t.Fatalf("two questions have %d answers", len(r.facts))
		}
		for id, seen := range r.facts {
			a, ok := seen.Get()
			if !ok {
				if seen.IsAbsent() || seen.Why() == "" {
					t.Errorf("%s: what is not answered must be unread and say why: %+v", id, seen)
				}
				continue
			}
			// An answer is in its stream between its own marks and holds none.
			for _, s := range []struct{ stream, text string }{{stdout, a.Stdout}, {stderr, a.Stderr}} {
				if !strings.Contains(s.stream, spell("<begin "+id+">")+s.text+"\n"+testMark+" end ") {
					t.Errorf("%s: answer %q is not framed in %q", id, s.text, s.stream)
				}
				if strings.Contains(s.text, "\n"+testMark+" begin ") {
					t.Errorf("%s: answer %q holds a mark", id, s.text)
				}
			}
		}
		if r.whole && !strings.Contains(stdout, spell("<done>")) {
			t.Errorf("whole without the last mark: %q", stdout)
		}
	})
}
