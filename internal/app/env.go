// Package app holds what macfleet's commands do: each is one function of an Env, which is
// what all commands have, and of the options of that command only. It wires providers,
// steps, hosts and engine; nothing else does.
package app

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/lock"
	"github.com/macfleet/macfleet/internal/runlog"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps"
)

// Streams are the three of a process, and its clock.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	Now      func() time.Time // nil: time.Now
}

// Global are the flags that every command has.
type Global struct {
	Dir, Environment string
	Vars, VarFiles   []string
	Sandbox          string // folder of the simulated world; empty: the real one
	SandboxHosts     int
	Selection
	Parallelism, ObserveParallelism, Starts int
	SSHConfig                               string // file; empty: the usual ones
	NoColor, Stats                          bool
	Verbose                                 bool   // every action that begins or ends is printed
	RunsDir, LogFile                        string // empty: the default
	LogLevel                                string
}

// What counts unless a flag says otherwise.
const (
	DefaultObservers = engine.DefaultObservers // hosts observed at once
	DefaultStarts    = hosts.DefaultStarts     // connections opened at once
	DefaultDrain     = engine.DefaultDrain     // how long the Pods of a host have to end
	DefaultExpiry    = 24 * time.Hour          // how long a plan file may be applied
	DefaultLimit     = 60_000                  // bytes of Markdown: GitHub takes comments of 65,536 characters
	LockTimeout      = 15 * time.Minute        // how long another's apply is waited for: one of a few hosts ends within it
	LockLasts        = lock.DefaultLasts       // how long a lock counts without being renewed
)

// SandboxDefault is the sandbox's folder under the configuration's.
var SandboxDefault = filepath.Join(".macfleet", "sandbox")

// Call is the command line.
type Call struct {
	Line    []string // all of its words
	Command string   // its first word that is no flag
	Args    []string // words that are no flags
	// Flags are those that the line or the environment gave, as --name=value. Of a
	// variable it holds only the name: a value may be a secret.
	Flags []string
	// Repeat are the flags of the line that choose the configuration, its variables and the world: printed commands have them too. Commands
	// are macfleet's commands.
	Repeat, Commands []string
}

// gave reports whether a flag was given.
func (c Call) gave(flag string) bool {
	return slices.ContainsFunc(c.Flags, func(f string) bool { return strings.HasPrefix(f, "--"+flag+"=") })
}

// harmlessWord matches a word that a shell takes as it is.
var harmlessWord = regexp.MustCompile(`^[\w@%+=:,./-]+$`)

// Quoted is a word as it is typed into a shell.
func Quoted(word string) string {
	if harmlessWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// words are the arguments, and then the flags.
func (c Call) words() []string { return append(append([]string{}, c.Args...), c.Flags...) }

// Env is what a command works with.
type Env struct {
	Streams
	Global
	Call

	stop    context.Context // done at the first Ctrl-C
	reading bounds          // of reading a configuration; zero: the ordinary ones
	acting  atomic.Bool     // something is being changed that the first Ctrl-C does not interrupt
	secrets secret.Scrubber // what this process knows and must not print
	output  output          // standard output
	input   *bufio.Reader   // standard input by lines; nil: none was read yet
	stream  *view.Stream    // of --json or --json-into, from its first line on; nil: there is none
	mute    bool            // standard output is the stream's: no text for people
	into    output          // the file of --json-into

	this   plan.Run     // what this process does, by name
	log    *runlog.Log  // nil: there is none
	logger *slog.Logger // so here

	live   atomic.Pointer[view.Live]     // the progress that is on the terminal; nil: none
	record atomic.Pointer[runlog.Writer] // of the current run; nil: none
	held   atomic.Pointer[lock.Lock]     // the cluster's lock, until it is released; nil: not held
	ending *view.Ending                  // the result of an applying command so far; nil: it is another command
}

// localPath is where this machine keeps its own files of a kind: next to the configuration, or in the sandbox.
func (env *Env) localPath(name string) string {
	if env.Sandbox != "" {
		return filepath.Join(env.sandboxDir(), name)
	}
	return filepath.Join(env.Dir, ".macfleet", name)
}

// directory is the configuration's folder without links, so that it has one name; empty: unknown.
func (env *Env) directory() string {
	path, err := filepath.Abs(env.Dir)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return ""
	}
	return path
}

// refuse returns an error of this text where something is so.
func refuse(is bool, format string, args ...any) error {
	if !is {
		return nil
	}
	return fmt.Errorf(format, args...)
}

// newRun names the run of this command.
func newRun(now time.Time) plan.Run {
	return plan.Run{ID: strings.ToLower(rand.Text()[:10]), Who: runner(), Started: now}
}

// runner is who runs this: a person at a machine, or a job of CI as people find it again there.
func runner() string {
	env := os.Getenv
	for _, ci := range []struct{ is, name, job, actor string }{
		{"GITHUB_ACTIONS", "GitHub Actions", env("GITHUB_REPOSITORY") + " run " + env("GITHUB_RUN_ID"), env("GITHUB_ACTOR")},
		{"GITLAB_CI", "GitLab CI", env("CI_PROJECT_PATH") + " job " + env("CI_JOB_ID"), env("GITLAB_USER_LOGIN")},
		{"BUILDKITE", "Buildkite", env("BUILDKITE_PIPELINE_SLUG") + " build " + env("BUILDKITE_BUILD_NUMBER"), env("BUILDKITE_BUILD_CREATOR")},
	} {
		if env(ci.is) == "" {
			continue
		}
		text := ci.name + " " + strings.TrimSpace(ci.job)
		if ci.actor != "" {
			text += " by " + ci.actor
		}
		return text
	}
	return caller()
}

// caller is who runs this, for a note that others read.
func caller() string {
	name := "somebody"
	if me, err := user.Current(); err == nil {
		name = me.Username
	}
	return name + "@" + machine()
}

// machine is the name of the one this runs on.
func machine() string {
	if name, err := os.Hostname(); err == nil {
		return name
	}
	return "an unknown machine"
}

// Selection says which hosts a command is about, and what of them.
type Selection struct {
	On, Exclude []string // selectors
	Steps       []string
	plan.Decisions
	ForceBusy []string      // names of hosts that are not waited for
	Passwords []string      // names of hosts whose login passwords were typed
	WhatIf    []fleet.Scale // groups with other numbers of servers than configured
}

// parsed returns the selection as plans of a configuration take it.
func (s Selection) parsed(config *fleet.Config) (plan.Selection, error) {
	sel := plan.Selection{Decisions: s.Decisions, ForceBusy: s.ForceBusy, Passwords: s.Passwords, WhatIf: s.WhatIf}
	for _, flag := range []struct {
		name  string
		texts []string
		into  *[]plan.Selector
	}{{"--on", s.On, &sel.On}, {"--exclude", s.Exclude, &sel.Exclude}} {
		for _, text := range flag.texts {
			one, err := plan.ParseSelector(text)
			if err != nil {
				return sel, fmt.Errorf("%s: %w", flag.name, err)
			}
			*flag.into = append(*flag.into, one)
		}
	}
	if s.Rollback && len(sel.On) == 0 {
		return sel, errors.New("--rollback needs --on: name the hosts, e.g. --on fleet=runners")
	}
	if err := refuse(s.AdoptOnly && (len(s.Steps) > 0 || s.Rollback || s.NewTokens), "--adopt-only writes markers and host keys only: remove --step, --rollback and --rotate-tokens"); err != nil {
		return sel, err
	}
	known, err := acceptable(config)
	for _, name := range s.AcceptLists {
		if err = cmp.Or(err, fleet.Among("list", name, known)); err != nil {
			return sel, fmt.Errorf("--accept-list: %w", err)
		}
	}
	if s.AdoptOnly {
		sel.Steps = []plan.StepID{steps.RootStep}
		return sel, nil
	}
	if sel.Steps, err = plan.ParseSteps(s.Steps, steps.For); err != nil {
		return sel, fmt.Errorf("--step: %w", err)
	}
	return sel, nil
}

// narrowed reports whether a part of the fleets is meant.
func (s Selection) narrowed() bool { return len(s.On)+len(s.Exclude)+len(s.Steps) > 0 || s.AdoptOnly }

// and returns the selection of more hosts: by name, or by a selector.
func (s Selection) and(hosts ...string) Selection {
	s.On = slices.Clone(s.On)
	for _, h := range hosts {
		if !strings.Contains(h, "=") {
			h = "name=" + h
		}
		s.On = append(s.On, h)
	}
	return s
}

// oneHost refuses selections where a command is about one host: ignoring them would look like an
// answer about something else.
func (env *Env) oneHost() error {
	return refuse(env.narrowed(), "%s takes one HOST: remove --on, --exclude and --step", env.Command)
}

// didYouMean puts the known name that is nearest to a wrong one into a question, if there is one.
func didYouMean(question, name string, known []string) string {
	if near := fleet.Nearest(name, known); near != "" {
		return fmt.Sprintf(question, near)
	}
	return ""
}
