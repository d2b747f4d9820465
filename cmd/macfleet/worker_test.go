package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/macfleet/macfleet/internal/app"
)

// commandLimit is how long a command of a worker may take. A loaded machine is slow, and the race detector is too.
const commandLimit = 3 * time.Minute

// task is a command line for a worker, with the environment and the folder in which it runs.
type task struct {
	Args, Env []string
	Dir       string
}

// answer is what a command said. Left names what it should not have left in its process.
type answer struct {
	Code           int
	Out, Err, Left string
}

// worker is a process that runs macfleet's commands one after the other. Starting a process for each would
// cost more than most commands do, and what one read of a world the next would read again.
type worker struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *json.Decoder
	said  bytes.Buffer  // its standard error: a panic, a data race
	limit time.Duration // of a command
}

// newWorker starts a worker. Libraries read some variables only when their process starts.
func newWorker(env []string) (*worker, error) {
	w := &worker{cmd: exec.Command("macfleet-worker"), limit: commandLimit}
	w.cmd.Env, w.cmd.Stderr = env, &w.said
	out, err := w.cmd.StdoutPipe()
	if err == nil {
		w.out = json.NewDecoder(out)
		w.in, err = w.cmd.StdinPipe()
	}
	if err == nil {
		err = w.cmd.Start()
	}
	return w, err
}

// run returns the answer to a task. A worker that fails has ended, and the error has its stacks.
func (w *worker) run(t task) (a answer, err error) {
	// SIGQUIT makes the process print its goroutines and exit.
	late := time.AfterFunc(w.limit, func() { _ = w.cmd.Process.Signal(syscall.SIGQUIT) })
	defer late.Stop()
	if err = json.NewEncoder(w.in).Encode(t); err == nil {
		err = w.out.Decode(&a)
	}
	if err != nil {
		return a, errors.Join(fmt.Errorf("the process of macfleet %s: %w", strings.Join(t.Args, " "), err), w.end())
	}
	return a, nil
}

// end ends the process, and reports what it said besides its answers.
func (w *worker) end() error {
	_ = w.in.Close() // it may have ended
	err := w.cmd.Wait()
	if w.said.Len() > 0 {
		err = errors.Join(err, errors.New(w.said.String()))
	}
	return err
}

// work is the main function of a worker. Tasks come on standard input, answers go to standard output.
func work() {
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	os.Stdout = os.Stderr // nothing but answers goes there
	start := residue{goroutines: goleak.IgnoreCurrent(), files: openFiles(), mask: umask()}
	for {
		var t task
		err := in.Decode(&t)
		if errors.Is(err, io.EOF) {
			return
		}
		var a answer
		if err == nil {
			a, err = t.perform()
		}
		a.Left = start.since()
		if err == nil {
			err = out.Encode(a)
		}
		if err != nil {
			panic(err)
		}
	}
}

// perform runs the command in this process.
func (t task) perform() (answer, error) {
	os.Clearenv()
	for _, v := range t.Env {
		name, value, _ := strings.Cut(v, "=")
		if err := os.Setenv(name, value); err != nil {
			return answer{}, err
		}
	}
	if err := os.Chdir(t.Dir); err != nil {
		return answer{}, err
	}
	if fault := faults[t.Args[0]]; fault != nil {
		fault()
		return answer{}, nil
	}
	var out, errs bytes.Buffer
	code := run(context.Background(), t.Args, app.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
	return answer{Code: code, Out: out.String(), Err: errs.String()}, nil
}

// faults are what a command might do to its process, by the name of a command that does it.
var faults = map[string]func(){
	"leave-goroutine": func() { go func() { select {} }() },
	"leave-file": func() {
		if _, err := os.Open(os.DevNull); err != nil {
			panic(err)
		}
	},
	"leave-umask": func() { syscall.Umask(umask() ^ 1) },
	"panic":       func() { panic("at once") },
	"hang": func() {
		if r, _, err := os.Pipe(); err == nil {
			_, _ = r.Read(make([]byte, 1)) // which never comes
		}
	},
}

// TestWorker: what a command leaves behind in its process is reported, and a command that ends the process or does
// not end fails with its stacks.
func TestWorker(t *testing.T) {
	t.Parallel()
	for name, wanted := range map[string]string{
		"version": "", "leave-goroutine": "found unexpected goroutines", "leave-file": "open: /", "leave-umask": "umask 00",
		"panic": "panic: at once", "hang": "SIGQUIT: quit",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, err := newWorker(nil)
			if err != nil {
				t.Fatal(err)
			}
			run := func(name string) string {
				a, err := w.run(task{Args: []string{name}, Dir: t.TempDir()})
				if err != nil {
					return err.Error()
				}
				return a.Left
			}
			if left := run("version"); left != "" {
				t.Fatalf("version left %q", left)
			}
			if name == "hang" {
				w.limit = time.Millisecond
			}
			if left := run(name); (left == "") != (wanted == "") || !strings.Contains(left, wanted) {
				t.Errorf("left %q, wanted %q", left, wanted)
			}
			_ = w.end() // it may have ended
		})
	}
}

// residue is what a process has besides its memory.
type residue struct {
	goroutines goleak.Option
	files      []string
	mask       int
}

// since says what this process has now that it did not have then. It waits for goroutines that are about to end.
func (then residue) since() string {
	var left []string
	if err := goleak.Find(then.goroutines); err != nil {
		left = append(left, err.Error())
	}
	for _, file := range openFiles() {
		if !slices.Contains(then.files, file) {
			left = append(left, "open: "+file)
		}
	}
	if mask := umask(); mask != then.mask {
		left = append(left, fmt.Sprintf("umask %04o, was %04o", mask, then.mask))
	}
	return strings.Join(left, "\n")
}

// openFiles names the open descriptors, each with its file or connection. Those that wait for the others belong to
// Go itself, and so do pipes: it keeps some to move bytes between connections.
func openFiles() (files []string) {
	all, err := filepath.Glob("/dev/fd/*")
	if err != nil {
		panic(err)
	}
	for _, name := range all {
		if to, err := os.Readlink(name); err == nil && !strings.HasPrefix(to, "anon_inode:") && !strings.HasPrefix(to, "pipe:") && !strings.HasSuffix(to, "/fd") {
			files = append(files, name+" "+to)
		}
	}
	return files
}

func umask() int {
	mask := syscall.Umask(0)
	syscall.Umask(mask)
	return mask
}
