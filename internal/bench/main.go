// Command bench measures macfleet against its budgets, in one run on one machine, and prints a table.
// It exits with 1 if a figure is over its budget, and with 2 if it could not measure.
//
//	go run ./internal/bench -rows ssh,plan
//
// Every figure is the median of several rounds. The rounds of two compared programs alternate, so that
// noise affects both.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// options are what a run measures, and how often.
type options struct {
	rows      []string
	rounds    int
	hosts     int // real sshd hosts
	uploads   int // real sshd hosts that an artifact is sent to
	simulated int // hosts of the sandbox, and slow ones
	recorded  int // recorded hosts to plan; twice as many show the growth
	cache     string
	limit     time.Duration // of the whole run
}

// parallelism is how many hosts macfleet and the bare program contact at once.
const parallelism = 32

// group is one subject of the table.
type group struct {
	name    string
	measure func(*bench, context.Context) ([]row, error)
}

var groups = []group{
	{"host", (*bench).host},
	{"ssh", (*bench).ssh},
	{"upload", (*bench).upload},
	{"slow", (*bench).slow},
	{"sandbox", (*bench).sandbox},
	{"plan", (*bench).plan},
	{"version", (*bench).version},
}

// childArgument starts this program as a measured child.
const childArgument = "child"

func run(ctx context.Context, args []string, in io.Reader, out, log io.Writer) int {
	if len(args) == 1 && args[0] == childArgument {
		if err := child(ctx, in, out); err != nil {
			fmt.Fprintln(log, "Error:", err)
			return 2
		}
		return 0
	}
	o, err := parse(args, log)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(log, "Error:", err)
		return 2
	}
	ctx, cancel := context.WithTimeoutCause(ctx, o.limit, fmt.Errorf("not finished within %s; measure less with -rows or raise -limit", o.limit))
	defer cancel()
	head := machine(o) // before the run itself makes a load
	rows, err := measure(ctx, o, log)
	show(out, head, rows)
	if err != nil {
		fmt.Fprintln(log, "Error:", err)
		return 2
	}
	return verdict(rows)
}

// verdict returns the exit code of a table.
func verdict(rows []row) int {
	if slices.ContainsFunc(rows, func(r row) bool { return r.over }) {
		return 1
	}
	return 0
}

func parse(args []string, log io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(log)
	var names []string
	for _, g := range groups {
		names = append(names, g.name)
	}
	rows := f.String("rows", strings.Join(names, ","), "what to measure")
	f.IntVar(&o.rounds, "rounds", 5, "rounds of each figure")
	f.IntVar(&o.hosts, "hosts", 100, "real sshd hosts")
	f.IntVar(&o.uploads, "uploads", 20, "real sshd hosts that an artifact is sent to")
	f.IntVar(&o.simulated, "simulated", 500, "simulated hosts, and hosts that take a second each")
	f.IntVar(&o.recorded, "recorded", 10_000, "recorded hosts to plan (the growth is measured with twice as many)")
	f.StringVar(&o.cache, "cache", "", "folder that keeps the prepared sandbox (default: the user's cache)")
	f.DurationVar(&o.limit, "limit", 40*time.Minute, "time limit of the whole run")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	o.rows = strings.Split(*rows, ",")
	for _, r := range o.rows {
		if !slices.Contains(names, r) {
			return o, fmt.Errorf("-rows: unknown row %q; use any of %s", r, strings.Join(names, ","))
		}
	}
	if o.rounds < 1 || o.hosts < 1 || o.simulated < 5 || o.recorded < 1 {
		return o, errors.New("a number must be at least 1, and -simulated at least 5")
	}
	if o.cache == "" {
		home, err := os.UserCacheDir()
		if err != nil {
			return o, fmt.Errorf("find the cache folder: %w; set it with -cache", err)
		}
		o.cache = filepath.Join(home, "macfleet-bench")
	}
	return o, nil
}

// bench is one run.
type bench struct {
	options
	self   string // this program
	dir    string // removed at the end
	log    io.Writer
	binary func() (string, error) // builds macfleet once and returns its path
}

// measure runs the selected groups. On an error it also returns the rows measured before.
func measure(ctx context.Context, o options, log io.Writer) (rows []row, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "macfleet-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b := &bench{options: o, self: self, dir: dir, log: log}
	b.binary = builder(ctx, dir)
	for _, g := range groups {
		if !slices.Contains(o.rows, g.name) {
			continue
		}
		more, err := g.measure(b, ctx)
		rows = append(rows, more...)
		if err != nil {
			return rows, fmt.Errorf("%s: %w", g.name, err)
		}
	}
	return rows, nil
}

func (b *bench) say(format string, args ...any) { fmt.Fprintf(b.log, format+"\n", args...) }
