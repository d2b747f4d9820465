package app

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/internal/view"
)

// The forms in which plans are printed.
const (
	formatText     = "text"
	formatJSON     = "json"
	formatMarkdown = "markdown"
)

// DefaultLimit is how long a Markdown document is: GitHub takes comments of 65,536
// characters, and something stands around it.
const DefaultLimit = 60_000

// Form says how a plan is printed.
type Form struct {
	Format string // one of Forms
	JSON   bool   // an alias of the form json
	Limit  int    // bytes of Markdown
}

// Forms are the forms in which plans are printed; the first is the default.
func Forms() []string { return []string{formatText, formatJSON, formatMarkdown} }

// check settles the form.
func (o *Form) check(c Call) error {
	switch {
	case !slices.Contains(Forms(), o.Format):
		return fmt.Errorf("--format %s: write %s", o.Format, strings.Join(Forms(), ", "))
	case o.JSON && c.gave("format") && o.Format != formatJSON:
		return fmt.Errorf("--json and --format %s exclude each other", o.Format)
	case c.gave("limit") && o.Format != formatMarkdown:
		return errors.New("--limit is of --format markdown")
	}
	if o.JSON {
		o.Format = formatJSON
	}
	if o.Format != formatMarkdown {
		return nil
	}
	_, err := view.NewMarkdown(o.Limit)
	return err
}

// printed is something in each of its forms.
type printed struct {
	json     func(io.Writer) error
	markdown func(view.Markdown, io.Writer) error
	text     func(*view.Text)
}

// print prints something in the form that was asked for.
func (env *Env) print(o Form, p printed) error {
	if o.Format != formatMarkdown {
		return env.answer(o.Format == formatJSON, p.json, p.text)
	}
	m, err := view.NewMarkdown(o.Limit)
	if err != nil {
		return err
	}
	return p.markdown(m, env.sink(env.Out))
}

// answer prints something as one JSON document, or as text for people.
func (env *Env) answer(asJSON bool, document func(io.Writer) error, text func(*view.Text)) error {
	if asJSON {
		return document(env.Out)
	}
	text(env.outText())
	return nil
}

// Annotations is whose notes a command prints on the lines of the configuration,
// beside what it says: github, or empty for nobody's.
type Annotations string

func (n Annotations) check() error {
	if n != "" && n != "github" {
		return fmt.Errorf("--annotations %s: write github", string(n))
	}
	return nil
}

// print prints notes, where they are asked for. dir is the configuration's folder as notes
// on its lines name it: from the top of the repository where the environment tells it,
// else from here.
func (n Annotations) print(env *Env, notes func(dir string) error) error {
	if n == "" {
		return nil
	}
	top, err := filepath.Abs(os.Getenv("GITHUB_WORKSPACE")) // here, where there is none
	if err != nil {
		return fmt.Errorf("--annotations: %w", err)
	}
	dir, err := filepath.Abs(env.Dir)
	if err != nil {
		return fmt.Errorf("--annotations: %w", err)
	}
	name, err := filepath.Rel(top, dir)
	if err != nil {
		return fmt.Errorf("--annotations: %w", err)
	}
	return notes(filepath.ToSlash(name))
}
