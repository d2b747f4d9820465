package load

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "write what is got into the archives of testdata/faults")

// TestFaults loads the archives of testdata/faults. Each holds the files of a
// directory, the expected diagnostics ("want"), and perhaps options:
// "options" has lines of "-e NAME", "--var NAME=VALUE", "env NAME=VALUE" and
// "--var-file FILE" and "--unlocked", where a FILE is one of the archive's.
func TestFaults(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("testdata/faults/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			files, opts, want := unpack(t, archive)
			r, diags := Dir(directory(files), opts)
			// The goldens stay as they are when a step is added.
			got := strings.ReplaceAll(rendered(r, diags), "version are "+listed(stepNames())+".", "version are STEPS.")
			if diff := cmp.Diff(want, got); diff != "" && !*update {
				t.Errorf("diagnostics (-want +got):\n%s", diff)
			}
			if (r.Config == nil) != diags.HasErrors() {
				t.Errorf("config = %v with these diagnostics:\n%s", r.Config, got)
			}
			if *update {
				rewrite(t, name, archive, got)
			}
		})
	}
}

func unpack(t *testing.T, archive *txtar.Archive) (files map[string]string, opts Options, want string) {
	t.Helper()
	files, opts = map[string]string{}, Options{Version: "0.1.0", Env: map[string]string{}}
	var options string
	for _, f := range archive.Files {
		switch f.Name {
		case "want":
			want = string(f.Data)
		case "options":
			options = string(f.Data)
		default:
			files[f.Name] = string(f.Data)
		}
	}
	if files["base.fleet.hcl"] == "small\n" {
		files["base.fleet.hcl"] = small
	}
	if files["base.fleet.hcl"] == "base\n" {
		files["base.fleet.hcl"] = base
	}
	for line := range strings.Lines(options) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "--unlocked":
			opts.Unlocked = true
		case "-e":
			opts.Environment = rest
		case "--var":
			opts.Vars = append(opts.Vars, rest)
		case "env":
			name, value, _ := strings.Cut(rest, "=")
			opts.Env[name] = value
		case "--var-file":
			opts.VarFiles = append(opts.VarFiles, VarFile{Name: rest, Content: []byte(files[rest])})
			delete(files, rest)
		default:
			t.Fatalf("unknown option %q", line)
		}
	}
	return files, opts, want
}

func rewrite(t *testing.T, name string, archive *txtar.Archive, got string) {
	t.Helper()
	found := false
	for i := range archive.Files {
		if archive.Files[i].Name == "want" {
			archive.Files[i].Data, found = []byte(got), true
		}
	}
	if !found {
		archive.Files = append(archive.Files, txtar.File{Name: "want", Data: []byte(got)})
	}
	if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestNestedJSON: a text of brackets, each of which costs the decoder all that is below it again, is refused; brackets
// within texts are none.
func TestNestedJSON(t *testing.T) {
	t.Parallel()
	for text, fine := range map[string]bool{
		strings.Repeat("[", 100) + strings.Repeat("]", 100): true,
		strings.Repeat("[", 101) + strings.Repeat("]", 101): false,
		strings.Repeat(`{"a":`, 9000):                       false,
		strings.Repeat(`[],`, 500):                          true,
		`"` + strings.Repeat("[", 300) + `"`:                true,
		`"\\\"` + strings.Repeat("[", 300) + `"`:            true,
		`"\\"` + strings.Repeat("[", 101):                   false,
	} {
		if why := flatJSON(text); (why == "") != fine {
			t.Errorf("%.40s…: %q", text, why)
		}
	}
}

// TestLongTexts: a text of very many lines is refused before it is parsed, with its place, by fmt and load alike: the parser's
// time grows with the square of their number. Many short texts are fine.
func TestLongTexts(t *testing.T) {
	t.Parallel()
	heredoc := func(lines int) string { return "<<EOT\n" + strings.Repeat("a\n", lines) + "EOT\n" }
	short := strings.Repeat("  \"a\",\n", 9_000)
	for _, c := range []struct {
		text string
		line int // of the fault; 0: none
	}{
		{"locals {\n  t = " + heredoc(9_900) + "}\n", 0},
		{"locals {\n  t = " + heredoc(200_000) + "}\n", 10_003},
		{"locals {\n  t = \"${" + heredoc(6_000) + "}${" + heredoc(6_000) + "}\"\n}\n", 10_005},
		{"locals {\n  t = [\n" + short + "  ]\n  u = [\n" + short + "  ]\n}\n", 0},
	} {
		_, diags := Format("a.fleet.hcl", []byte(c.text))
		if _, same := Dir(directory(map[string]string{"a.fleet.hcl": c.text}), Options{}); c.line > 0 && same[0].Detail != diags[0].Detail {
			t.Errorf("%.30q: fmt says %v, load %v", c.text, diags, same)
		}
		if c.line == 0 && diags.HasErrors() || c.line > 0 && (len(diags) != 1 || diags[0].Summary != tooLarge || diags[0].Subject.Start.Line != c.line) {
			t.Errorf("%.30q: %v, want a fault in line %d", c.text, diags, c.line)
		}
	}
}
