package secret_test

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"text/template"

	"pgregory.net/rapid"

	"github.com/macfleet/macfleet/internal/secret"
)

const (
	plain = "hunter2-hunter2"
	mask  = "(secret)"
)

// leaks returns the forms in which a formatter could give the text away.
func leaks(out string) []string {
	var found []string
	low := strings.ToLower(out)
	for _, form := range []string{plain, fmt.Sprintf("%x", plain), fmt.Sprintf("%d", []byte(plain)), fmt.Sprintf("%U", []rune(plain))} {
		if strings.Contains(low, strings.ToLower(form)) {
			found = append(found, form)
		}
	}
	return found
}

// value is a secret with a text.
func value(t *testing.T, text string) secret.Value {
	t.Helper()
	v, err := secret.New(text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// verbs are those that fmt knows, with flags, and some that are wrong for a text: fmt then prints the operand without asking it.
func verbs() []string {
	return []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "% x", "%d", "%t", "%c", "%U", "%e", "%b", "%o",
		"%20s", "%-20s", "%.3s", "%#q", "%+q", "%T", "%p", "%z", "%w"}
}

func TestValuePrintsTheMaskUnderEveryVerb(t *testing.T) {
	t.Parallel()
	v := value(t, plain)
	for _, verb := range verbs() {
		for name, arg := range map[string]any{"value": v, "pointer": &v} {
			out := fmt.Sprintf(verb, arg)
			if found := leaks(out); found != nil {
				t.Errorf("Sprintf(%q, %s) = %q, which shows %q", verb, name, out, found)
			}
			// fmt itself answers %T, %p and %w.
			if !strings.Contains("%T %p %w", verb) && out != mask {
				t.Errorf("Sprintf(%q, %s) = %q, want the mask", verb, name, out)
			}
		}
	}
	if got := v.String() + v.GoString() + fmt.Sprint(v) + fmt.Sprintln(v); got != mask+mask+mask+mask+"\n" {
		t.Errorf("the other ways to print give %q", got)
	}
}

type open struct{ Password secret.Value }

// hidden keeps the value where fmt may not call its methods.
type hidden struct{ password secret.Value }

type embedded struct{ secret.Value }

// holders are values with a secret somewhere inside, and what they are in JSON.
func holders(v secret.Value) map[string]struct {
	holder any
	json   string
} {
	return map[string]struct {
		holder any
		json   string
	}{
		"alone":                       {v, `"(secret)"`},
		"pointer":                     {&v, `"(secret)"`},
		"struct":                      {open{v}, `{"Password":"(secret)"}`},
		"pointer to struct":           {&open{v}, `{"Password":"(secret)"}`},
		"unexported field":            {hidden{v}, `{}`},
		"pointer to unexported field": {&hidden{v}, `{}`},
		"embedded":                    {embedded{v}, `"(secret)"`},
		"slice":                       {[]secret.Value{v}, `["(secret)"]`},
		"array":                       {[1]secret.Value{v}, `["(secret)"]`},
		"slice of pointers":           {[]*secret.Value{&v}, `["(secret)"]`},
		"slice of unexported fields":  {[]hidden{{v}}, `[{}]`},
		"map value":                   {map[string]secret.Value{"p": v}, `{"p":"(secret)"}`},
		"map of unexported fields":    {map[string]hidden{"host": {v}}, `{"host":{}}`},
		"map key":                     {map[secret.Value]string{v: "x"}, `{"(secret)":"x"}`},
		"any":                         {[]any{v, &v, hidden{v}}, `["(secret)","(secret)",{}]`},
		"nested":                      {map[string][]map[string]any{"a": {{"b": open{v}, "c": &hidden{v}}}}, `{"a":[{"b":{"Password":"(secret)"},"c":{}}]}`},
		"anonymous":                   {struct{ a, b any }{v, []any{hidden{v}}}, `{}`},
	}
}

func TestValueStaysHiddenInsideOthers(t *testing.T) {
	t.Parallel()
	for name, tc := range holders(value(t, plain)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := tc.holder
			for _, verb := range verbs() {
				if out := fmt.Sprintf(verb, h); leaks(out) != nil {
					t.Errorf("Sprintf(%q) = %q", verb, out)
				}
			}
			if out, err := json.Marshal(h); err != nil || string(out) != tc.json {
				t.Errorf("json.Marshal = %s, %v; want %s", out, err, tc.json)
			}
			if out, err := xml.Marshal(h); err == nil && leaks(string(out)) != nil {
				t.Errorf("xml.Marshal = %s", out)
			}
			var b bytes.Buffer
			if err := gob.NewEncoder(&b).Encode(h); err == nil && leaks(b.String()) != nil {
				t.Errorf("gob = %q", b.String())
			}
		})
	}
}

func TestValueInErrorsTemplatesAndLogs(t *testing.T) {
	t.Parallel()
	v := value(t, plain)
	errs := errors.Join(fmt.Errorf("log in with %v", v), fmt.Errorf("log in: %w", fmt.Errorf("with %s", &v)))
	if got, want := errs.Error(), "log in with (secret)\nlog in: with (secret)"; got != want {
		t.Errorf("error = %q, want %q", got, want)
	}
	var b strings.Builder
	if err := template.Must(template.New("t").Parse(`{{.}} {{printf "%s" .}}`)).Execute(&b, v); err != nil || b.String() != "(secret) (secret)" {
		t.Errorf("template = %q, %v", b.String(), err)
	}
	var log bytes.Buffer
	for _, l := range []*slog.Logger{slog.New(slog.NewTextHandler(&log, nil)), slog.New(slog.NewJSONHandler(&log, nil))} {
		l.Info("m", "v", v, "p", &v, "open", open{v}, "hidden", hidden{v}, slog.Group("g", "v", v))
	}
	if leaks(log.String()) != nil || strings.Count(log.String(), mask) < 8 {
		t.Errorf("log = %s", log.String())
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "<sealed>"} {
		v, err := secret.New(text)
		if err == nil || !v.IsZero() || v.Reveal() != "" {
			t.Errorf("New(%q) = %q, %v; want an error and no value", text, v.Reveal(), err)
		}
	}
	// What merely contains the placeholder is someone's real password.
	for _, text := range []string{" ", "<sealed> ", "<SEALED>", "x\x00y", "ä\n", "(secret)"} {
		v, err := secret.New(text)
		if err != nil || v.IsZero() || v.Reveal() != text {
			t.Errorf("New(%q) = %q, %v; want the text back", text, v.Reveal(), err)
		}
	}
	var zero secret.Value
	if !zero.IsZero() || zero.Reveal() != "" || fmt.Sprint(zero) != mask {
		t.Errorf("the zero Value reveals %q and prints %q", zero.Reveal(), fmt.Sprint(zero))
	}
}

func TestNewKeepsAnyText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringN(1, -1, -1).Draw(t, "text")
		v, err := secret.New(text)
		if text == "<sealed>" {
			return
		}
		if err != nil || v.Reveal() != text {
			t.Fatalf("New(%q) reveals %q, %v", text, v.Reveal(), err)
		}
		if out := fmt.Sprintf("%v%+v%#v%s%q%x%d", v, v, v, v, v, v, v); out != strings.Repeat(mask, 7) {
			t.Fatalf("printed %q", out)
		}
	})
}
