package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/load"
	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/sandbox"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/providers/kubernetes"
	"github.com/macfleet/macfleet/providers/scaleway"
	"github.com/macfleet/macfleet/providers/secrets"
	"github.com/macfleet/macfleet/providers/transport"
	"github.com/macfleet/macfleet/steps"
)

// session is a command's view of the world: the configuration, and everything
// that is needed to look and to act.
type session struct {
	app      *app
	config   *fleet.Config
	world    *sandbox.World // nil outside the sandbox
	hosts    *hosts.Client
	engine   *engine.Engine
	scaleway transport.Counter
	cluster  transport.Counter
	// kubernetes is the cluster; nil: the configuration has none.
	kubernetes *kubernetes.Client
	readOnly   bool                    // nothing is changed, so that what cannot be read may be done without
	recording  *recording              // of what changes something; nil: nothing does yet
	halt       context.CancelCauseFunc // lets the run start nothing more; nil: nothing can but a person
	closers    []func()
	started    time.Time
	unlock     func()     // gives the lock back, where there is one; may be called again
	cost       view.Stats // what is known of it before the end
}

// config reads the configuration. Faults are shown, and the error is then just
// the exit code.
func (a *app) config() (*fleet.Config, error) {
	config, faults, err := a.read()
	if a.into != nil {
		a.into.Diagnostics(view.DiagnosticsOf(faults.Diags))
	}
	switch {
	case err != nil:
		return nil, err
	case a.stream != nil:
		a.stream.Diagnostics(view.DiagnosticsOf(faults.Diags))
	case len(faults.Diags) > 0:
		if err := a.errText().Diagnostics(faults.Files, faults.Diags); err != nil {
			return nil, err
		}
	}
	if config == nil {
		return nil, exit(exitError)
	}
	a.loaded = config
	return config, nil
}

// read reads the configuration, which is nil when a fault of it is an error.
func (a *app) read() (*fleet.Config, view.Faults, error) {
	opts := load.Options{Environment: a.environment, Env: variables(os.Environ()), Vars: a.vars, Version: fleet.Version, Unlocked: a.unlocked}
	for _, name := range a.varFiles {
		content, err := os.ReadFile(name)
		if err != nil {
			return nil, view.Faults{}, fmt.Errorf("read variables: %w", err)
		}
		opts.VarFiles = append(opts.VarFiles, load.VarFile{Name: name, Content: content})
	}
	if info, err := os.Stat(a.dir); err != nil || !info.IsDir() {
		if err == nil {
			err = &fs.PathError{Op: "open", Path: a.dir, Err: errors.New("not a directory")}
		}
		return nil, view.Faults{}, fmt.Errorf("read the configuration: %w; name its directory with -C", err)
	}
	files := os.DirFS(a.dir)
	if a.inside {
		root, err := os.OpenRoot(a.dir)
		if err != nil {
			return nil, view.Faults{}, fmt.Errorf("read the configuration: %w", err)
		}
		defer root.Close()
		files = root.FS()
	}
	type loaded struct {
		config *fleet.Config
		faults view.Faults
	}
	r, err := within(a.stop, longestReading, func() loaded {
		result, diags := load.Dir(files, opts)
		return loaded{result.Config, view.Faults{Files: result.Files, Diags: diags, Ends: result.Ends}}
	})
	if err != nil {
		return nil, view.Faults{}, fmt.Errorf("the configuration: %w", err)
	}
	return r.config, r.faults, nil
}

// variables returns what MACFLEET_VAR_<name> says, by name.
func variables(environ []string) map[string]string {
	out := make(map[string]string)
	for _, e := range environ {
		if rest, ok := strings.CutPrefix(e, "MACFLEET_VAR_"); ok {
			name, value, _ := strings.Cut(rest, "=")
			if name != "FILE" { // MACFLEET_VAR_FILE is --var-file
				out[name] = value
			}
		}
	}
	return out
}

// untilStopped returns a context that ends with the first Ctrl-C too, and what lets
// go of it.
func (a *app) untilStopped(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(a.stop, cancel)
	return ctx, func() { stop(); cancel() }
}

// open reads the configuration and connects to everything but the hosts. The pins
// go by acting: what runs is finished after the first Ctrl-C, and pins its host.
func (a *app) open(ctx, acting context.Context) (*session, error) {
	return a.openAs(ctx, acting, &session{app: a, started: time.Now()})
}

// openToLook is open for a command that changes nothing.
func (a *app) openToLook(ctx context.Context) (*session, error) {
	return a.openAs(ctx, ctx, &session{app: a, started: time.Now(), readOnly: true})
}

func (a *app) openAs(ctx, acting context.Context, s *session) (*session, error) {
	config, err := a.config()
	if err != nil {
		return nil, err
	}
	s.config, s.cost.Configuration = config, time.Since(s.started)
	selection, err := a.selection()
	if err != nil {
		return nil, err
	}
	if err := s.checkApproval(); err != nil {
		return nil, err
	}
	if a.parallelism < 1 {
		return nil, fmt.Errorf("--parallelism is %d; it must be at least 1", a.parallelism)
	}
	if a.starts < 1 {
		return nil, fmt.Errorf("--connection-starts is %d; it must be at least 1", a.starts)
	}
	if err := s.connect(ctx, acting, selection); err != nil {
		s.close()
		return nil, err
	}
	s.cost.Credentials = time.Since(s.started) - s.cost.Configuration
	return s, nil
}

func (a *app) selection() (plan.Selection, error) {
	sel := plan.Selection{ForceBusy: a.idling.force, Former: a.failed != nil}
	for _, text := range a.on {
		s, err := plan.ParseSelector(text)
		if err != nil {
			return sel, fmt.Errorf("--on: %w", err)
		}
		sel.On = append(sel.On, s)
	}
	for _, text := range a.exclude {
		s, err := plan.ParseSelector(text)
		if err != nil {
			return sel, fmt.Errorf("--exclude: %w", err)
		}
		sel.Exclude = append(sel.Exclude, s)
	}
	if sel.Rollback = a.rollback; a.rollback && len(sel.On) == 0 {
		return sel, errors.New("--rollback needs to be told whose: name hosts with --on, for example --on fleet=runners")
	}
	var err error
	if sel.Steps, err = plan.ParseSteps(a.steps, steps.For); err != nil {
		return sel, fmt.Errorf("--step: %w", err)
	}
	return sel, nil
}

func (s *session) connect(ctx, acting context.Context, selection plan.Selection) error {
	if err := s.openWorld(); err != nil {
		return err
	}
	if err := s.app.openLog(); err != nil {
		return err
	}
	s.scaleway.Tell, s.cluster.Tell = s.app.told("scaleway"), s.app.told("kubernetes")
	servers, err := s.servers()
	if err != nil {
		return err
	}
	if err := s.openCluster(); err != nil {
		return err
	}
	if s.hosts, err = s.client(ctx, s.kubernetes); err != nil {
		return err
	}
	s.closers = append(s.closers, s.hosts.Close)
	s.engine = &engine.Engine{Config: s.config, Steps: steps.For, Servers: servers, Hosts: s.hosts, Pins: s.pins(acting),
		Selection: selection, Parallelism: s.app.parallelism, Scrub: s.app.secrets.Scrub, Stop: s.app.stop, Now: time.Now, Emit: func(engine.Event) {}}
	if s.engine.Bounds, err = s.boundsOf(); err != nil {
		return err
	}
	if s.kubernetes != nil {
		s.engine.Cluster, s.engine.Tell = s.kubernetes, s.tellNode
		s.engine.Locked = s.lease().Look
	}
	if s.app.approved != nil {
		s.engine.Approved = s.app.approved.Approved()
	}
	s.engine.Drain = engine.Drain{Within: s.app.idling.timeout}
	s.engine.Runners = engine.NoRunners{} // no step registers one
	s.engine.Artifacts = s.app.artifactStore(s.world)
	s.engine.Input = func(in engine.InputFor, value secret.Value) (secret.Value, error) {
		return steps.Input(steps.InputFor(in), value)
	}
	s.engine.Passwords = &passwords{scaleway: servers, config: s.config, secrets: s.resolver(s.kubernetes), asked: s.app.asked,
		learn: s.app.secrets.Learn, known: make(map[string][]engine.Password)}
	return nil
}

func (s *session) servers() (*scaleway.Client, error) {
	client := transport.New(&s.scaleway, scaleway.RequestsPerSecond)
	client.Transport = transport.Watch(client.Transport, s.app.secrets.Learn)
	s.closers = append(s.closers, client.CloseIdleConnections)
	o := scaleway.Options{ProjectID: s.config.ProjectID, Zones: s.config.Scaleway.Zones, HTTP: client}
	if s.world != nil {
		o.URL = s.world.ScalewayURL()
		o.AccessKey, o.SecretKey = s.world.ScalewayKeys()
		o.ProjectID = s.world.ProjectID()
	}
	return scaleway.New(o)
}

func (s *session) resolver(cluster *kubernetes.Client) secrets.Resolver {
	r := secrets.Resolver{Dir: s.app.dir, LookupEnv: os.LookupEnv, Tell: s.app.secrets.Learn}
	if cluster != nil {
		r.Kubernetes = cluster.Secret
	}
	if s.world != nil {
		r.World = s.world.Secret
	}
	return r
}

// close ends everything that the session opened, and says what it cost.
func (s *session) close() {
	for _, c := range s.closers {
		c()
	}
	if s.world != nil {
		if err := s.world.Close(); err != nil {
			s.app.errText().Error(err)
		}
	}
	if s.app.stats && s.hosts != nil {
		s.cost.Hosts, s.cost.Spent, s.cost.Total = s.hosts.Stats(), s.hosts.Spent(), time.Since(s.started)
		s.cost.Requests = []view.Requests{{Provider: "scaleway", Count: s.scaleway.Requests()}, {Provider: "kubernetes", Count: s.cluster.Requests()}}
		s.app.errText().Stats(s.cost)
	}
}

// sent passes on how far an upload is.
func (s *session) sent(p hosts.Progress) { s.engine.Sent(p) }

// timed shows events and counts what they took.
func (s *session) timed(show func(engine.Event)) func(engine.Event) {
	return func(e engine.Event) {
		s.cost.Phases.Event(e)
		s.event(e) // it is on the disk before anything that it tells of begins
		show(e)
	}
}
