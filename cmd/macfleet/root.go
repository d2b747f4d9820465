package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/internal/runlog"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/plan"
)

// streams are the three of a process.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// The exit codes. exitCodes says which command uses which.
const (
	exitDone       = 0
	exitError      = 1
	exitDifferent  = 2 // changes, drift
	exitIncomplete = 3 // something refused, unknown, failed or not converged
	exitLeft       = 130
)

const exitCodes = `Exit codes:
  0    done; plan --detailed-exitcode: no changes; drift: compared everything, no drift; apply: converged; doctor: all ok
  1    error: faulty configuration, missing credentials, a provider that does not answer
  2    plan --detailed-exitcode: changes; drift: drift (2 beats 3); fmt --check, artifacts lock --check: some files would change
  3    plan --detailed-exitcode, drift: incomplete (drift: a provider that does not answer, too); apply: some hosts failed, refused, interrupted or not converged;
       doctor: something is not ok
  130  left at once by a second Ctrl-C`

// exit ends a command with a code after everything was said.
type exit int

// Error is never shown.
func (e exit) Error() string { return fmt.Sprintf("exit %d", int(e)) }

// options are the global flags.
type options struct {
	dir          string
	environment  string
	vars         []string
	varFiles     []string
	sandbox      string
	sandboxHosts int
	on, exclude  []string
	steps        []string
	bounds       plan.Bounds // of plan and apply
	maxHosts     int         // likewise; 0: as the guardrails say
	bounded      bool        // the command is one of these
	idling       idling      // of apply
	rollback     bool        // of plan and apply
	parallelism  int
	starts       int
	sshConfig    string
	noColor      bool
	stats        bool
	keeping      keeping
	jsonInto     string // of apply, plan and drift
}

// sandboxDefault is the sandbox's folder under the configuration's.
var sandboxDefault = filepath.Join(".macfleet", "sandbox")

// app is what all commands share.
type app struct {
	streams
	options
	stop     context.Context         // done at the first Ctrl-C
	acting   atomic.Bool             // something is being changed that the first Ctrl-C does not break off
	stream   *view.Stream            // of apply --json, from its first line on
	secrets  secret.Scrubber         // what this process knows and must not say
	output   output                  // standard output
	input    *bufio.Reader           // standard input by lines; nil: nobody has read any yet
	loaded   *fleet.Config           // the configuration, once it was read
	approved *approval               // the plan file that is applied; nil: none
	unlocked bool                    // an artifact may lack its digest
	inside   bool                    // no file outside of the configuration's folder is read for it
	asked    map[string]secret.Value // login passwords that a person typed, by the name of the host

	args    []string       // of the command line
	given   *pflag.FlagSet // of the command
	command string         // its first word
	failed  *failedRun     // that --failed-from names; nil: it names none
	this    plan.Run       // what this process does, by name
	log     *runlog.Log    // nil: there is none
	logger  *slog.Logger   // so here
	into    *view.Stream   // of --json-into; nil: there is none
	written output         // so here

	live   atomic.Pointer[view.Live]     // the progress that is on the terminal; nil: none
	record atomic.Pointer[runlog.Writer] // of the run that is under way; nil: none
}

var errInterrupted = errors.New("interrupted")

// run executes one command line and returns its exit code.
func run(ctx context.Context, args []string, s streams) int {
	ctx, leave := context.WithCancelCause(ctx)
	stop, interrupt := context.WithCancel(ctx)
	// A reader that went away must not kill an apply in the middle of an action:
	// what is written after it fails, and the run goes on to its end.
	// (Notify and not Ignore, which programs that are started would inherit.)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, stopSignals()...)
	a := &app{streams: s, stop: stop, output: output{to: s.out}, args: args, this: newRun(time.Now())}
	// It stands beside the app, whose flags are being read while this may speak.
	notice := (&app{streams: s}).errText()
	late := time.NewTimer(time.Hour)
	late.Stop() // until the second Ctrl-C
	over := make(chan struct{})
	go func() {
		defer close(over)
		a.heed(signals, notice, interrupt, leave, late)
	}()
	defer func() {
		signal.Stop(signals)
		close(signals)
		<-over
		interrupt()
		leave(nil)
	}()
	root := a.root()
	root.SetArgs(args)
	ended := make(chan int, 1)
	go func() {
		err := root.ExecuteContext(ctx)
		if i := slices.Index(args, "--sandbox"); i >= 0 && tooMuch(err) {
			err = fmt.Errorf("%w\nA folder for --sandbox stands behind a sign: --sandbox=DIR", err)
		}
		ended <- a.code(ctx, err)
	}()
	select {
	case code := <-ended:
		return code
	case <-late.C:
		notice.Error(a.left())
		return exitLeft
	}
}

// code shows an error and returns its exit code.
func (a *app) code(ctx context.Context, err error) int {
	code, shown := a.verdict(ctx, err)
	if shown != nil {
		a.fail(shown)
	}
	a.endLog(code, code == exitError || code == exitLeft || code == exitIncomplete && a.record.Load() != nil)
	return code
}

// verdict returns the exit code of what a command came to, and the error that is
// still to be shown.
func (a *app) verdict(ctx context.Context, err error) (int, error) {
	var quiet exit
	switch {
	case errors.Is(context.Cause(ctx), errInterrupted):
		return exitLeft, a.left()
	case a.stop.Err() != nil && errors.Is(err, context.Canceled):
		return exitError, errors.New("interrupted before anything was done")
	case a.stop.Err() != nil && err != nil && !errors.As(err, &quiet):
		return exitError, fmt.Errorf("interrupted: %w", err)
	}
	if lost := errors.Join(a.unwritten(), a.notInto()); lost != nil && (err == nil || errors.As(err, &quiet)) {
		err = lost
	}
	switch {
	case err == nil:
		return exitDone, nil
	case errors.As(err, &quiet):
		return int(quiet), nil
	}
	return exitError, err
}

// fail shows the error that ends the command: to a program that reads a stream
// as its last line, to everybody else as text.
func (a *app) fail(err error) {
	if text := a.secrets.Scrub(err.Error()); text != err.Error() {
		err = errors.New(text)
	}
	a.logged(slog.LevelError, "error", "error", err)
	if a.into != nil {
		a.into.Error(err)
	}
	if a.stream != nil {
		a.stream.Error(err)
		return
	}
	a.errText().Error(err)
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "macfleet",
		Short: "Plan, apply and watch fleets of Mac minis",
		Long: "macfleet reads HCL that says what fleets of rented Mac minis should be, looks at the truth,\n" +
			"shows the difference, and removes it. There is no state file.\n\n" + exitCodes,
		Version:       fleet.Version,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(c *cobra.Command, _ []string) error {
			if c.Name() == cobra.ShellCompRequestCmd || c.Name() == cobra.ShellCompNoDescRequestCmd {
				return nil // completion says nothing of faults
			}
			if err := fromEnvironment(c.Flags()); err != nil {
				return err
			}
			a.given, a.command = c.Flags(), strings.Fields(c.CommandPath() + " macfleet")[1]
			if c.Flags().Changed("sandbox") && a.sandbox == "" {
				return errors.New("--sandbox= names no folder; without one this would be the real world")
			}
			return nil
		},
	}
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	f := root.PersistentFlags()
	f.SortFlags = false
	f.StringVarP(&a.dir, "directory", "C", ".", "`DIR` of the *.fleet.hcl files")
	f.StringVarP(&a.environment, "environment", "e", "", "`ENVIRONMENT`, mandatory where the configuration has any")
	f.StringArrayVar(&a.vars, "var", nil, "set a variable: `NAME=VALUE`")
	f.StringArrayVar(&a.varFiles, "var-file", nil, "set variables from a `FILE` of name = value lines")
	f.StringVar(&a.sandbox, "sandbox", "", "work on a simulated world in `DIR`, made when missing")
	f.Lookup("sandbox").NoOptDefVal = sandboxDefault
	f.IntVar(&a.sandboxHosts, "sandbox-hosts", 0, "servers in the pool of a new sandbox: `N` (default 16)")
	f.StringArrayVar(&a.on, "on", nil, "only hosts that match a `SELECTOR` (or another --on), for example fleet=runners,zone=fr-par-1,ready=false,name=…")
	f.StringArrayVar(&a.exclude, "exclude", nil, "no hosts that match a `SELECTOR`")
	f.StringArrayVar(&a.steps, "step", nil, "only a `STEP` (or another --step), for example power; no server is claimed or renamed then")
	f.IntVar(&a.parallelism, "parallelism", 32, "`N` hosts worked on at once")
	f.IntVar(&a.starts, "connection-starts", hosts.DefaultStarts, "`N` connections opened at once, until they are logged in")
	f.StringVar(&a.sshConfig, "ssh-config", "", "the ssh client's `FILE`, none for no file (default ~/.ssh/config and /etc/ssh/ssh_config; a sandbox has none)")
	f.BoolVar(&a.noColor, "no-color", false, "no colours")
	f.BoolVar(&a.stats, "stats", false, "say what the command cost")
	a.keeping.flags(f)
	root.AddCommand(a.planCmd(), a.applyCmd(), a.driftCmd(), a.hostsCmd(), a.explainCmd(), a.doctorCmd(),
		a.showCmd(), a.runsCmd(), a.initCmd(), a.cordonCmd(), a.holdCmd(), a.unholdCmd(), a.restartCmd(), a.lockingCmd(),
		a.validateCmd(), a.fmtCmd(), a.artifactsCmd(), a.sandboxCmd(), a.versionCmd())
	a.completions(root)
	shells(root)
	explainArgs(root)
	return root
}

// shells adds the command that prints completion scripts, for the shells of
// macOS and Linux.
func shells(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	c, _, err := root.Find([]string{"completion"})
	if err != nil {
		return
	}
	c.Short = "Print the completion script for bash, zsh or fish"
	c.Long = "completion prints the script that completes macfleet's commands, flags and names in a shell.\n" +
		"The help of the command for a shell says where to put it."
	c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	for _, shell := range c.Commands() {
		if shell.Name() == "powershell" {
			c.RemoveCommand(shell)
		}
	}
}

// argsError says that a command's arguments are too few or too many, and what to
// type.
type argsError struct {
	text string
	over bool // too many
}

func (e *argsError) Error() string { return e.text }

// tooMuch reports whether an error is about a word that has no place.
func tooMuch(err error) bool {
	var e *argsError
	return errors.As(err, &e) && e.over || err != nil && strings.HasPrefix(err.Error(), "unknown command")
}

// explainArgs makes all commands below c say which arguments are missing or too
// many, by the names that their usage has for them.
func explainArgs(c *cobra.Command) {
	for _, sub := range c.Commands() {
		explainArgs(sub)
		if check := sub.Args; check != nil {
			sub.Args = func(c *cobra.Command, args []string) error {
				if check(c, args) == nil {
					return nil
				}
				return wrongArgs(c, args)
			}
		}
	}
}

func wrongArgs(c *cobra.Command, args []string) error {
	path, names := c.CommandPath(), strings.Fields(c.Use)[1:]
	needed := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return strings.HasPrefix(n, "[") })
	if len(args) < len(needed) {
		missing := strings.Join(needed[len(args):], " and ")
		return &argsError{text: fmt.Sprintf("%s needs %s; see %s --help", path, missing, path)}
	}
	extra := args[min(len(names), len(args)-1)]
	if c.HasSubCommands() {
		return &argsError{over: true, text: fmt.Sprintf("%s has no command %q; see %s --help", path, extra, path)}
	}
	return &argsError{over: true, text: fmt.Sprintf("%s has no place for %q; see %s --help", strings.Join(append([]string{path}, names...), " "), extra, path)}
}

// fromEnvironment fills flags that were not given from MACFLEET_<FLAG>. --var
// has MACFLEET_VAR_<name> instead.
func fromEnvironment(flags *pflag.FlagSet) error {
	var err error
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed || f.Name == "var" || f.Name == "help" || f.Name == "version" || err != nil {
			return
		}
		name := "MACFLEET_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		value, ok := os.LookupEnv(name)
		if !ok || value == "" {
			return
		}
		if f.Name == "sandbox" {
			if on, berr := strconv.ParseBool(value); berr == nil && !on {
				return
			} else if berr == nil {
				value = f.NoOptDefVal
			}
		}
		if serr := flags.Set(f.Name, value); serr != nil {
			err = fmt.Errorf("environment variable %s: %w", name, serr)
		}
	})
	return err
}
