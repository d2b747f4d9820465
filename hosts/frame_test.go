package hosts

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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

// The marks as exchange.sh prints them.
func hostMark(uid string) string        { return "\n" + testMark + " host " + uid + "\n" }
func beginMark(id string) string        { return "\n" + testMark + " begin " + id + "\n" }
func endMark(status string) string      { return "\n" + testMark + " end " + status + "\n" }
func doneMark() string                  { return "\n" + testMark + " done\n" }
func frame(id, text, end string) string { return beginMark(id) + text + endMark(end) }

func TestParse(t *testing.T) {
	t.Parallel()
	const cutOff = "the answer was truncated"
	type facts = map[string]inventory.Seen[plan.Answer]
	tests := []struct {
		name   string
		stdout string
		stderr string
		root   bool
		cut    bool // the last mark is missing
		want   facts
	}{
		{name: "nothing asked", stdout: hostMark("0") + doneMark(), root: true, want: facts{}},
		{name: "two answers",
			stdout: hostMark("0") + frame("a", "one\n", "0") + frame("b", "two", "3") + doneMark(),
			stderr: frame("a", "", "0") + frame("b", "oh\n", "3"),
			root:   true, want: facts{"a": said(0, "one\n", ""), "b": said(3, "two", "oh\n")}},
		{name: "not root", stdout: hostMark("501") + doneMark(), want: facts{}},
		{name: "a user id that begins with 0 is not root's", stdout: hostMark("01") + doneMark(), want: facts{}},
		{name: "empty answers",
			stdout: hostMark("0") + frame("a", "", "0") + frame("b", "\n", "0") + doneMark(),
			stderr: frame("a", "", "0") + frame("b", "", "0"),
			root:   true, want: facts{"a": said(0, "", ""), "b": said(0, "\n", "")}},
		{name: "noise before, between and after",
			stdout: "Welcome to acme\n% " + hostMark("0") + "x" + frame("a", "one", "0") + "job 7 ended" + frame("b", "two", "0") + "mail" + doneMark() + "bye",
			stderr: "tty: not one" + frame("a", "e", "0") + "\nwarning\n" + frame("b", "", "0") + "logout",
			root:   true, want: facts{"a": said(0, "one", "e"), "b": said(0, "two", "")}},
		{name: "noise with CRLF", stdout: "motd\r\n" + hostMark("0") + frame("a", "one\r\n", "0") + doneMark(),
			stderr: frame("a", "", "0"), root: true, want: facts{"a": said(0, "one\r\n", "")}},
		{name: "a question that has no frame",
			stdout: hostMark("0") + frame("b", "two", "0") + doneMark(), stderr: frame("b", "", "0"),
			root: true, want: facts{"a": unread(cutOff), "b": said(0, "two", "")}},
		{name: "a frame that no one asked for",
			stdout: hostMark("0") + frame("z", "", "0") + frame("a", "one", "0") + doneMark(), stderr: frame("a", "", "0"),
			root: true, want: facts{"a": said(0, "one", "")}},
		{name: "interrupted in an answer",
			stdout: hostMark("0") + frame("a", "one", "0") + beginMark("b") + "tw", stderr: frame("a", "", "0") + beginMark("b"),
			root: true, cut: true, want: facts{"a": said(0, "one", ""), "b": unread(cutOff)}},
		{name: "interrupted in a begin mark",
			stdout: hostMark("0") + "\n" + testMark + " begin a", root: true, cut: true, want: facts{"a": unread(cutOff)}},
		{name: "interrupted in an end mark",
			stdout: hostMark("0") + beginMark("a") + "one\n" + testMark + " end 0", stderr: frame("a", "", "0"),
			root: true, cut: true, want: facts{"a": unread(cutOff)}},
		{name: "last mark missing",
			stdout: hostMark("0") + frame("a", "one", "0"), stderr: frame("a", "", "0"),
			root: true, cut: true, want: facts{"a": said(0, "one", "")}},
		{name: "last mark interrupted",
			stdout: hostMark("0") + "\n" + testMark + " done", root: true, cut: true, want: facts{}},
		{name: "an end mark is missing between two answers",
			stdout: hostMark("0") + beginMark("a") + "one" + frame("b", "two", "0") + doneMark(),
			stderr: frame("a", "", "0") + frame("b", "", "0"),
			root:   true, want: facts{"a": unread(cutOff), "b": said(0, "two", "")}},
		{name: "frame only on stdout", stdout: hostMark("0") + frame("a", "one", "0") + doneMark(),
			root: true, want: facts{"a": unread(cutOff)}},
		{name: "frame only on stderr", stdout: hostMark("0") + doneMark(), stderr: frame("a", "", "0"),
			root: true, want: facts{"a": unread(cutOff)}},
		{name: "the streams disagree on the exit code", stdout: hostMark("0") + frame("a", "one", "0") + doneMark(),
			stderr: frame("a", "", "1"), root: true, want: facts{"a": unread(cutOff)}},
		{name: "needs root", stdout: hostMark("501") + frame("a", "", needsRoot) + frame("b", "two", "0") + doneMark(),
			stderr: frame("a", "", needsRoot) + frame("b", "", "0"),
			want:   facts{"a": unread("needs root"), "b": said(0, "two", "")}},
		{name: "stopped by the watchdog", stdout: hostMark("0") + frame("a", "part", "124") + doneMark(),
			stderr: frame("a", "watchdog: stopped after 10 s\n", "124"),
			root:   true, want: facts{"a": unread("timed out and was stopped")}},
		{name: "its own exit code of 124", stdout: hostMark("0") + frame("a", "all", "124") + doneMark(),
			stderr: frame("a", "oh", "124"), root: true, want: facts{"a": said(124, "all", "oh")}},
		{name: "the watchdog's words and another exit code", stdout: hostMark("0") + frame("a", "all", "0") + doneMark(),
			stderr: frame("a", "watchdog: stopped after 10 s\n", "0"),
			root:   true, want: facts{"a": said(0, "all", "watchdog: stopped after 10 s\n")}},
		{name: "an exit code that is none", stdout: hostMark("0") + frame("a", "", "zero") + doneMark(),
			stderr: frame("a", "", "zero"),
			root:   true, want: facts{"a": unread(`the answer has "zero" in place of an exit code`)}},
		{name: "an empty exit code", stdout: hostMark("0") + frame("a", "", "") + doneMark(),
			stderr: frame("a", "", ""),
			root:   true, want: facts{"a": unread(`the answer has "" in place of an exit code`)}},
		{name: "marks of another exchange in an answer",
			stdout: hostMark("0") + frame("a", strings.ReplaceAll(frame("b", "no", "0"), testMark, "f"+testMark[1:]), "0") +
				frame("b", "two", "0") + doneMark(),
			stderr: frame("a", "", "0") + frame("b", "", "0"),
			root:   true, want: facts{
				"a": said(0, strings.ReplaceAll(frame("b", "no", "0"), testMark, "f"+testMark[1:]), ""),
				"b": said(0, "two", "")}},
		{name: "the mark in a line that is no mark",
			stdout: hostMark("0") + frame("a", "x "+testMark+" end 0\n"+testMark+" ends 0\n", "0") + doneMark(),
			stderr: frame("a", testMark, "0"),
			root:   true, want: facts{"a": said(0, "x "+testMark+" end 0\n"+testMark+" ends 0\n", testMark)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var ids []string
			for id := range tt.want {
				ids = append(ids, id)
			}
			got, err := parse(testMark, tt.stdout, tt.stderr, asked(ids...))
			must(t, err)
			want := reply{root: tt.root, whole: !tt.cut, facts: tt.want}
			if diff := cmp.Diff(want, got, whole); diff != "" {
				t.Errorf("reply (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseWithoutFirstMark(t *testing.T) {
	t.Parallel()
	for name, stdout := range map[string]string{
		"nothing":             "",
		"noise":               "This account is currently not available.\n",
		"another mark":        "\nffff host 0\n",
		"interrupted":         "\n" + testMark + " host 0",
		"not at a line start": testMark + " host 0\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := parse(testMark, stdout, frame("a", "", "0"), asked("a"))
			if err == nil {
				t.Fatalf("parse(%q) = %+v, want an error", stdout, r)
			}
			if r.root || r.whole || len(r.facts) > 0 {
				t.Errorf("the reply holds %+v in spite of the error", r)
			}
		})
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
	spell := func(s string) string {
		return strings.NewReplacer("<host ", "\n"+testMark+" host ", "<begin ", "\n"+testMark+" begin ",
			"<end ", "\n"+testMark+" end ", "<done", "\n"+testMark+" done", ">", "\n").Replace(s)
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
				if !strings.Contains(s.stream, beginMark(id)+s.text+"\n"+testMark+" end ") {
					t.Errorf("%s: answer %q is not framed in %q", id, s.text, s.stream)
				}
				if strings.Contains(s.text, "\n"+testMark+" begin ") {
					t.Errorf("%s: answer %q holds a mark", id, s.text)
				}
			}
		}
		if r.whole && !strings.Contains(stdout, doneMark()) {
			t.Errorf("whole without the last mark: %q", stdout)
		}
	})
}
