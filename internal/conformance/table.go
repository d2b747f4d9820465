package conformance

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

//go:embed table/*.conf
var tables embed.FS

// Table returns all rows by file and line. An argument @NAME of a row, for a text that is too long for
// it, is replaced by texts[NAME]; an unknown name is an error.
func Table(texts map[string]string) ([]Row, error) {
	rows, _, err := read(tables, func(name string) (string, bool) { text, known := texts[name]; return text, known })
	return rows, err
}

// Reads returns the calls of tools that change nothing, so that a probe may make them: the arguments by the tool's name. After the
// ones before a last argument * there may be any. Only tools that say which calls these are have an entry.
func Reads() (map[string][][]string, error) {
	_, reads, err := read(tables, func(string) (string, bool) { return "", true })
	return reads, err
}

func read(fsys fs.FS, text func(name string) (string, bool)) ([]Row, map[string][][]string, error) {
	names, err := fs.Glob(fsys, "table/*.conf")
	if err != nil {
		return nil, nil, fmt.Errorf("list the conformance table: %w", err)
	}
	var rows []Row
	reads := make(map[string][][]string)
	known := make(map[string]string)
	for _, name := range names {
		content, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, nil, fmt.Errorf("read the conformance table: %w", err)
		}
		r := reader{file: path.Base(name), text: text, reads: reads}
		if err := r.read(string(content)); err != nil {
			return nil, nil, fmt.Errorf("read the conformance table: %s:%d: %w", name, r.line, err)
		}
		for _, row := range r.rows {
			if at, twice := known[row.ID()]; twice {
				return nil, nil, fmt.Errorf("read the conformance table: %s and %s have the same name, %q", at, row.File, row.ID())
			}
			known[row.ID()] = row.File
		}
		rows = append(rows, r.rows...)
	}
	return rows, reads, nil
}

// reader reads one file. Lines above a tool's first row apply to all its rows.
type reader struct {
	file     string
	text     func(name string) (string, bool)
	line     int
	rows     []Row
	reads    map[string][][]string
	defaults Row
	row      *Row // nil above the first row
}

func (r *reader) read(text string) error {
	for line := range strings.Lines(text) {
		r.line++
		line = strings.TrimSuffix(line, "\n")
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		at := strings.IndexAny(line, ":=~*")
		if at < 0 {
			return fmt.Errorf("%q is neither a comment nor KEY: VALUE", line)
		}
		key, sign, value := line[:at], line[at], strings.TrimPrefix(line[at+1:], " ")
		if err := r.enter(key, sign, value); err != nil {
			return err
		}
	}
	return r.finish()
}

func (r *reader) enter(key string, sign byte, value string) error {
	if key == "out" || key == "err" {
		return r.stream(key, sign, value)
	}
	if sign != ':' {
		return fmt.Errorf("%s takes a colon", key)
	}
	switch key {
	case "tool":
		if err := r.finish(); err != nil {
			return err
		}
		r.defaults = Row{Tool: value, Who: Login, Changes: Nothing, Needs: POSIX}
		return nil
	case "row":
		if err := r.finish(); err != nil {
			return err
		}
		row := r.defaults
		row.Name, row.File = value, fmt.Sprintf("%s:%d", r.file, r.line)
		row.Answers = []Answer{{Exit: Exit{Codes: []int{0}}}}
		r.row = &row
		return nil
	case "source", "needs", "who", "since", "changes", "if", "gap":
		return r.about(key, value)
	case "reads":
		if r.row != nil || r.defaults.Tool == "" {
			return errors.New("reads is not above the first row of a tool")
		}
		r.reads[r.defaults.Tool] = append(r.reads[r.defaults.Tool], strings.Fields(value))
		return nil
	}
	if r.row == nil {
		return fmt.Errorf("%s is above the first row", key)
	}
	answer := &r.row.Answers[len(r.row.Answers)-1]
	switch key {
	case "run":
		r.row.Script += value + "\n"
	case "arg":
		return r.arg(value)
	case "or":
		r.row.Answers = append(r.row.Answers, Answer{Exit: Exit{Codes: []int{0}}, Doubt: value})
	case "exit":
		exit, err := parseExit(value)
		answer.Exit = exit
		return err
	default:
		return fmt.Errorf("unknown key %q", key)
	}
	return nil
}

// about reads a key that may also be above the rows.
func (r *reader) about(key, value string) error {
	row := r.row
	if row == nil {
		row = &r.defaults
	}
	switch key {
	case "source":
		row.Source = value
	case "needs":
		row.Needs = Needs(value)
	case "who":
		row.Who = User(value)
	case "since":
		row.Since = value
	case "changes":
		row.Changes = Changes(value)
	case "if":
		row.If = value
	case "gap":
		row.Gap = value
	}
	return nil
}

func (r *reader) stream(key string, sign byte, value string) (err error) {
	if r.row == nil {
		return fmt.Errorf("%s is above the first row", key)
	}
	if sign == '=' {
		if value, err = strconv.Unquote(value); err != nil {
			return fmt.Errorf("%s= needs a quoted text: %w", key, err)
		}
	}
	answer := &r.row.Answers[len(r.row.Answers)-1]
	to := &answer.Stdout
	if key == "err" {
		to = &answer.Stderr
	}
	*to, err = to.with(part{sign, value})
	return err
}

// arg reads an argument: a quoted text, @NAME, or the line as it is.
func (r *reader) arg(value string) error {
	if name, ok := strings.CutPrefix(value, "@"); ok {
		text, known := r.text(name)
		if !known {
			return fmt.Errorf("unknown text %q", name)
		}
		value = text
	} else if strings.HasPrefix(value, `"`) {
		text, err := strconv.Unquote(value)
		if err != nil {
			return fmt.Errorf("argument %s: %w", value, err)
		}
		value = text
	}
	r.row.Args = append(r.row.Args, value)
	return nil
}

// finish ends the current row.
func (r *reader) finish() error {
	row := r.row
	r.row = nil
	if row == nil {
		return nil
	}
	switch {
	case row.Tool == "" || row.Name == "" || row.Script == "" || row.Source == "":
		return errors.New("the row above lacks a tool, name, script or source")
	case !slices.Contains([]Needs{POSIX, MacOS}, row.Needs), !slices.Contains([]User{Login, Root}, row.Who),
		!slices.Contains([]Changes{Nothing, Files, Settings}, row.Changes):
		return fmt.Errorf("the row above has needs %q, who %q, changes %q, and one of them is unknown", row.Needs, row.Who, row.Changes)
	}
	for _, a := range row.Answers[1:] {
		if a.Doubt == "" {
			return errors.New("an or: of the row above has no reason")
		}
	}
	r.rows = append(r.rows, *row)
	return nil
}

func parseExit(text string) (Exit, error) {
	if text == "not 0" {
		return Exit{Failure: true}, nil
	}
	var e Exit
	for word := range strings.FieldsSeq(text) {
		code, err := strconv.Atoi(word)
		if err != nil || code < 0 || code > 255 {
			return Exit{}, fmt.Errorf("%q is not an exit code; use codes or: not 0", word)
		}
		e.Codes = append(e.Codes, code)
	}
	return e, nil
}
