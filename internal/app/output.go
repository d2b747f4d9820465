package app

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/plan"
)

// outText returns the writer of text on standard output. Where standard output is the JSON stream, the text is discarded.
func (env *Env) outText() *view.Text {
	if env.mute {
		return view.NewText(io.Discard, 0, false)
	}
	return env.text(env.Out)
}

// errText returns the one on standard error.
func (env *Env) errText() *view.Text { return env.text(env.Err) }

func (env *Env) text(w io.Writer) *view.Text {
	width, _ := size(w)
	_, tty := terminal(w)
	t := view.NewText(env.sink(w), width, !env.NoColor && view.Colour(tty, os.Getenv))
	if !view.UTF8(tty, os.Getenv) {
		t.ASCII()
	}
	t.Repeat(env.Repeat, env.Commands)
	if !tty && os.Getenv("GITHUB_ACTIONS") == "true" {
		t.GitHub()
	}
	return t
}

// output remembers the first fault in writing: a plan that was not shown must not be applied.
type output struct {
	to   io.Writer
	name string // of a file
	mu   sync.Mutex
	err  error
}

// Write writes to the stream itself.
func (o *output) Write(p []byte) (int, error) {
	n, err := o.to.Write(p)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.err = err
	}
	return n, err
}

// sink returns what to write to instead of a stream: for standard output, what remembers faults.
func (env *Env) sink(w io.Writer) io.Writer {
	if w != env.Out || env.output.to == nil {
		return w
	}
	return &env.output
}

// lost returns why a stream did not take everything. A reader that closed the pipe (head, less) is not an error.
func (o *output) lost(what string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil || errors.Is(o.err, syscall.EPIPE) {
		return nil
	}
	return fmt.Errorf("%s: %w", what, o.err)
}

// close closes a file. Every write to it has said what it did not take.
func (o *output) close() {
	if file, ok := o.to.(*os.File); ok {
		_ = file.Close()
	}
}

// unwritten returns why standard output, or the file of --json-into, did not take everything.
func (env *Env) unwritten() error {
	return errors.Join(env.output.lost("write to standard output"), env.into.lost("--json-into: write to "+env.into.name))
}

// size returns the size of the terminal behind a stream, or zeros.
func size(w io.Writer) (columns, rows int) {
	if fd, ok := terminal(w); ok {
		if columns, rows, err := term.GetSize(fd); err == nil {
			return columns, rows
		}
	}
	return 0, 0
}

// terminal returns the file descriptor of a stream that is a terminal.
func terminal(stream any) (int, bool) {
	f, ok := stream.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	return int(f.Fd()), true
}

// interactive reports whether there is a person to prompt.
func (env *Env) interactive() bool {
	_, ok := terminal(env.In)
	return ok && os.Getenv("CI") == ""
}

// heartbeat is how often a run sums up how far it is where there is no terminal.
const heartbeat = 10 * time.Second

// progress shows a run's events until done is called: a line per host on a terminal, else as lines. p is what is applied, nil
// where hosts are only asked.
func (env *Env) progress(lines io.Writer, p *plan.Plan) (show func(engine.Event), done func()) {
	_, shown := terminal(lines)
	if _, ok := terminal(env.Err); ok && shown && os.Getenv("CI") == "" && os.Getenv("TERM") != "dumb" {
		live := view.NewLive(env.text(env.Err), p, func() (columns, rows int) { return size(env.Err) }, time.Now, env.Verbose)
		env.live.Store(live)
		return live.Event, func() {
			env.live.Store(nil)
			live.Close()
		}
	}
	return env.plain(lines, p)
}

// plain shows events as lines, with a heartbeat.
func (env *Env) plain(w io.Writer, p *plan.Plan) (show func(engine.Event), done func()) {
	l := view.NewLines(env.text(w), p, heartbeat, env.Verbose)
	events, ticks := make(chan engine.Event), time.NewTicker(time.Second)
	quit := make(chan struct{})
	var shown sync.WaitGroup
	shown.Go(func() {
		for {
			select {
			case e := <-events:
				l.Event(e)
			case now := <-ticks.C:
				l.Tick(now)
			case <-quit:
				return
			}
		}
	})
	return func(e engine.Event) { events <- e }, func() {
		ticks.Stop()
		close(quit)
		shown.Wait()
	}
}

// streamOut lets a program follow the command in lines of JSON on standard output, instead of a person.
func (env *Env) streamOut() {
	env.mute = true
	env.stream = view.NewStream(&env.output, time.Now)
}

// streamInto writes that stream to a file or a pipe, in addition to the text.
func (env *Env) streamInto(file string, asJSON bool) error {
	switch {
	case file == "":
		return nil
	case asJSON:
		return errors.New("--json and --json-into exclude each other: use one of them")
	}
	// To open a pipe waits for its reader.
	f, err := within(env.stop, bounds{}, func() (*os.File, error) { return os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600) })
	if errors.Is(err, errStopped) {
		err = fmt.Errorf("stopped waiting for a reader of %s", file)
	}
	if err != nil {
		return fmt.Errorf("--json-into: %w", err)
	}
	env.into.to, env.into.name = f, file
	env.stream = view.NewStream(&env.into, time.Now)
	return env.into.lost("--json-into: write to " + file)
}

// warn says what does not end the command, to a person and to programs.
func (env *Env) warn(text string) {
	text = env.secrets.Scrub(text)
	env.stream.Diagnostics([]view.Diagnostic{{Severity: "warning", Summary: text}})
	if !env.mute {
		env.errText().Warn(text)
	}
}

// say prints what is waited for, to a person or a program.
func (env *Env) say(line string) {
	env.stream.Waiting(line)
	if !env.mute {
		env.errText().Say(line)
	}
}

// The forms in which plans are printed.
const (
	formatText     = "text"
	formatJSON     = "json"
	formatMarkdown = "markdown"
)

// Form says how a plan is printed.
type Form struct {
	Format   string // one of Forms
	JSON     bool   // an alias of the form json
	Limit    int    // bytes of Markdown
	Full     bool   // as text: every host, step and field
	markdown view.Markdown
}

// Forms are the forms in which plans are printed; the first is the default.
func Forms() []string { return []string{formatText, formatJSON, formatMarkdown} }

// check settles the form.
func (o *Form) check(c Call) (err error) {
	if err := cmp.Or(
		refuse(!slices.Contains(Forms(), o.Format), "--format %s: write %s", o.Format, strings.Join(Forms(), ", ")),
		refuse(o.JSON && c.gave("format") && o.Format != formatJSON, "--json and --format %s exclude each other", o.Format),
		refuse(c.gave("limit") && o.Format != formatMarkdown, "--limit needs --format markdown")); err != nil {
		return err
	}
	if o.JSON {
		o.Format = formatJSON
	}
	if o.Format == formatMarkdown {
		o.markdown, err = view.NewMarkdown(o.Limit)
	}
	return err
}

// print prints something in the requested form.
func (env *Env) print(o Form, document func(io.Writer) error, markdown func(view.Markdown, io.Writer) error,
	text func(*view.Text)) error {
	if o.Format == formatMarkdown {
		return markdown(o.markdown, env.sink(env.Out))
	}
	return env.answer(o.Format == formatJSON, document, text)
}

// answer prints something as one JSON document, or as text for people.
func (env *Env) answer(asJSON bool, document func(io.Writer) error, text func(*view.Text)) error {
	if asJSON {
		return document(env.Out)
	}
	text(env.outText())
	return nil
}

// Annotations is whose notes a command prints on the configuration's lines: github, or none.
type Annotations string

func (n Annotations) check() error {
	return refuse(n != "" && n != "github", "--annotations %s: write github", string(n))
}

// print prints notes, if requested. dir is the configuration's folder as they name
// it: from the top of the repository if the environment names it, else from here.
func (n Annotations) print(env *Env, notes func(dir string) error) error {
	if n == "" {
		return nil
	}
	top, terr := filepath.Abs(os.Getenv("GITHUB_WORKSPACE")) // here, where there is none
	dir, derr := filepath.Abs(env.Dir)
	name, err := filepath.Rel(top, dir)
	if err := cmp.Or(terr, derr, err); err != nil {
		return fmt.Errorf("--annotations: %w", err)
	}
	return notes(filepath.ToSlash(name))
}
