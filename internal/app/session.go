package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/hosts/sshconfig"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/overssh"
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

// need says what a command wants of its session.
type need struct {
	reading
	Selection
	config         *fleet.Config           // nil: it is read
	whatIf         []string                // FLEET=N: other numbers of servers than configured
	clusterOnly    bool                    // only the cluster: no server is listed and no host is contacted
	accountOnly    bool                    // only the provider's account: what else is away is part of the answer
	needsCluster   string                  // the command that cannot do without one; empty: it can
	readOnly       bool                    // nothing is changed, so that what cannot be read may be done without
	watching       bool                    // a provider that is away is part of the answer
	bounds         *Bounds                 // of plan and apply
	full           bool                    // the plan is shown with every host, step and field
	asksRight      bool                    // a plan that renames servers asks first whether the API key may
	failOnDeferred bool                    // a run that leaves something for a later one exits 3
	drain          time.Duration           // of one host; 0: the default
	approved       *approval               // the plan file that is applied; nil: none
	failed         *failedRun              // that --failed-from names; nil: it names none
	asked          map[string]secret.Value // login passwords that a person typed, by the name of the host
}

// session is a command's view of the world: the configuration, and what is needed to observe and to act.
type session struct {
	need
	env        *Env
	world      *sandbox.World // nil outside the sandbox
	hosts      *hosts.Client
	engine     *engine.Engine
	scaleway   transport.Counter
	cluster    transport.Counter
	peered     []counted                           // requests to services that keep entries of hosts
	kubernetes *kubernetes.Client                  // nil: the configuration has no cluster
	in         inventory.ClusterID                 // that init cluster works on
	noted      inventory.Seen[inventory.ClusterID] // the one that it was prepared in
	mu         sync.Mutex
	left       []plan.Action           // of the run: those that were not started
	halt       context.CancelCauseFunc // lets the run start nothing more; nil: nothing can but a person
	closers    []func()
	opening    atomic.Value // string: what is being opened
	started    time.Time
	starved    starvation
	requests   chan struct{} // holds one for each request under way; nil: any number
	cost       view.Stats    // what is known of it before the end
}

// with opens a session. looking ends with the first Ctrl-C and acting, the command's context, with the second.
// The pins go by acting, unless nothing is changed: what runs is finished after the first, and pins its host.
func (env *Env) with(acting context.Context, n need, do func(looking context.Context, s *session) error) (err error) {
	looking, end := context.WithCancelCause(acting)
	cancel := func() { end(nil) }
	defer cancel()
	defer context.AfterFunc(env.stop, cancel)()
	if n.readOnly {
		acting = looking
	}
	s := &session{env: env, need: n, started: time.Now(), starved: starvation{end: end}}
	if err := s.openInTime(looking, acting); err != nil {
		return err
	}
	defer func() {
		s.close()
		err = cmp.Or(s.starvedError(), err)
	}()
	return do(looking, s)
}

// openingEnds is how long a session that is being opened has for its own end after the first Ctrl-C.
const openingEnds = 2 * time.Second

// openInTime opens the session, and leaves what it hangs in after the first Ctrl-C: a kubeconfig that is a pipe, or
// a program that a configuration of ssh calls, knows no context. Nothing has been changed by then.
func (s *session) openInTime(looking, acting context.Context) error {
	late, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer context.AfterFunc(looking, func() { time.AfterFunc(openingEnds, cancel) })()
	_, err := within(late, bounds{}, func() (bool, error) {
		err := s.open(looking, acting)
		if err != nil {
			s.close()
		}
		return true, err
	})
	if errors.Is(err, errStopped) {
		return fmt.Errorf("stopped waiting for %s", s.opening.Load())
	}
	return err
}

// open reads the configuration and connects to everything but the hosts.
func (s *session) open(looking, acting context.Context) (err error) {
	s.opening.Store("the configuration")
	if s.config == nil {
		if s.config, err = s.env.config(s.reading); err != nil {
			return err
		}
	}
	s.cost.Configuration = time.Since(s.started)
	var sel plan.Selection
	if !s.clusterOnly && !s.accountOnly {
		if sel, err = s.checked(); err != nil {
			return err
		}
	}
	if err := s.fitDescriptors(); err != nil {
		return err
	}
	if s.world, err = s.env.openWorld(s.config); err != nil {
		return err
	}
	s.opening.Store("the log file")
	if err := s.env.openLog(); err != nil {
		return err
	}
	s.env.warnOfSwitches(os.Getenv)
	s.scaleway.Report, s.cluster.Report = s.env.reportRequests("scaleway"), s.env.reportRequests("kubernetes")
	switch {
	case s.clusterOnly:
		return s.openCluster()
	case s.accountOnly:
		return nil
	}
	if err := s.connect(looking, acting, sel); err != nil {
		return err
	}
	s.cost.Credentials = time.Since(s.started) - s.cost.Configuration
	return nil
}

// checked returns the selection, after what must not be is refused.
func (s *session) checked() (plan.Selection, error) {
	if err := s.checkApproval(); err != nil { // first: a changed configuration may lack what the file names
		return plan.Selection{}, err
	}
	sel, err := s.parsed(s.config)
	if err != nil {
		return sel, err
	}
	if s.failed != nil {
		sel.Former = true
		if owner := (fleet.Owner{Name: s.failed.Configuration, Environment: s.failed.Environment}); owner != s.config.Owner {
			return sel, fmt.Errorf("--failed-from: that run was of %s, this is %s", owner, s.config.Owner)
		}
	}
	const tooFew = "--%s is %d; it must be at least 1"
	return sel, cmp.Or(refuse(s.env.Parallelism < 1, tooFew, "parallelism", s.env.Parallelism),
		refuse(s.env.ObserveParallelism < 1, tooFew, "observe-parallelism", s.env.ObserveParallelism),
		refuse(s.env.Starts < 1, tooFew, "connection-starts", s.env.Starts))
}

// sayMeant says which hosts the parts of names stand for, before anything is changed on them.
func (s *session) sayMeant() {
	for _, m := range s.engine.Selection.Meant {
		s.env.errText().Say(m.Given + " is " + m.Name)
	}
}

func (s *session) connect(looking, acting context.Context, sel plan.Selection) error {
	env := s.env
	s.opening.Store("scw's configuration")
	servers, err := s.servers()
	if err != nil {
		return err
	}
	if err := s.openCluster(); err != nil {
		return err
	}
	var keys []plan.FleetKey
	if s.hosts, keys, err = s.client(looking); err != nil {
		return err
	}
	s.closers = append(s.closers, s.hosts.Close)
	s.engine = &engine.Engine{Config: s.config, Steps: steps.For, Servers: servers, Hosts: overssh.Hosts{Client: s.hosts}, Pins: s.pins(acting),
		Selection: sel, Former: s.former(), Met: s.met, Parallelism: env.Parallelism, Observers: env.ObserveParallelism, Watching: s.watching, Scrub: env.secrets.Scrub, FleetKeys: keys,
		Stop: env.stop, Now: time.Now, Emit: s.event, Timing: env.outlook(s.config.Owner).Timing,
		AsksRight: s.asksRight, Drain: engine.Drain{Within: s.drain},
		Artifacts: env.artifactStore(s.world),
		Input: func(in engine.InputFor, value secret.Value) (secret.Value, error) {
			return steps.Input(steps.InputFor(in), value)
		},
		Passwords: &passwords{session: s, servers: servers}}
	if s.engine.Peers, err = s.peers(sel); err != nil {
		return err
	}
	if s.world != nil { // it reinstalls in seconds
		s.engine.Install.Every = 500 * time.Millisecond
		s.engine.Drain.Quiet = time.Second // no job is given between two checks by itself
	}
	if s.engine.Bounds, err = s.bounds.of(s.config, s.env.Call); err != nil {
		return err
	}
	if s.kubernetes != nil {
		s.engine.Cluster, s.engine.AddNodeEvent, s.engine.Locked = s.kubernetes, s.addNodeEvent, s.lease().Look
	}
	if s.approved != nil {
		s.engine.Approved = s.approved.Approved()
	}
	return nil
}

func (s *session) servers() (*scaleway.Client, error) {
	client := transport.New(&s.scaleway, scaleway.RequestsPerSecond)
	client.Transport = transport.Watch(s.frugal(client.Transport), s.env.secrets.Learn)
	s.closers = append(s.closers, client.CloseIdleConnections)
	o := scaleway.Options{ProjectID: s.config.ProjectID, Zones: s.config.Scaleway.Zones, Known: fleet.Zones(), HTTP: client,
		Waiting: s.env.reportWaiting("scaleway")}
	if s.world != nil {
		o.URL = s.world.ScalewayURL()
		o.AccessKey, o.SecretKey = s.world.ScalewayKeys()
		o.ProjectID, o.Known = cmp.Or(o.ProjectID, s.world.ProjectID()), s.world.Zones()
	}
	return scaleway.New(o)
}

func (s *session) resolver() secrets.Resolver {
	r := secrets.Resolver{Dir: s.env.Dir, LookupEnv: os.LookupEnv, Learn: s.env.secrets.Learn, Stop: s.env.stop}
	if s.kubernetes != nil {
		r.Kubernetes = s.kubernetes.Secret
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
		err := s.world.Close()
		if s.noteStarved(err); err != nil && s.starvedError() == nil {
			s.env.errText().Error(err)
		}
	}
	if s.env.Stats && s.hosts != nil {
		s.cost.Hosts, s.cost.Spent, s.cost.Total = s.hosts.Stats(), s.hosts.Spent(), time.Since(s.started)
		s.cost.Requests = []view.Requests{{Provider: "scaleway", Count: s.scaleway.Requests()}, {Provider: "kubernetes", Count: s.cluster.Requests()}}
		for _, c := range s.peered {
			if c.Requests() == 0 {
				continue // no host of the run needs it
			}
			s.cost.Requests = append(s.cost.Requests, view.Requests{Provider: c.provider, Count: c.Requests()})
		}
		s.env.errText().Stats(s.cost)
	}
}

// showing does something while its events are kept, and shown unless a program reads them in its own stream.
// p is what is applied, nil where hosts are only asked.
func showing[T any](s *session, lines io.Writer, p *plan.Plan, do func() (T, error)) (T, error) {
	quiet := s.engine.Emit
	defer func() { s.engine.Emit = quiet }()
	if s.env.mute {
		return do()
	}
	show, done := s.env.progress(lines, p)
	defer done()
	s.engine.Emit = func(e engine.Event) {
		s.event(e) // it is on the disk before anything that it reports begins
		show(e)
	}
	return do()
}

// openCluster opens the configuration's cluster, where it has one.
func (s *session) openCluster() error {
	if s.config.Kubernetes == nil {
		return refuse(s.needsCluster != "",
			"the configuration has no kubernetes block, so macfleet %s has no cluster to work on; docs/configuration.md says how to write one", s.needsCluster)
	}
	s.opening.Store("the kubeconfig")
	k := s.config.Kubernetes
	o := kubernetes.Options{Context: k.Context, Namespace: k.Namespace, LabelPrefix: k.LabelPrefix, Owner: s.config.Owner.String(), APIServer: k.APIServer,
		APIServerCA: k.CA, TLSServerName: k.TLSServerName, ProxyURL: k.ProxyURL,
		AgentNamespace: fleet.AgentNamespace(k.Namespace), PodNamespaces: k.PodNamespaces, Wrap: func(next http.RoundTripper) http.RoundTripper {
			return transport.Watch(s.frugal(s.cluster.Wrap(next)), s.env.secrets.Learn)
		}}
	if k.CAPI != nil {
		o.CAPI = &kubernetes.CAPI{Cluster: k.CAPI.Cluster, Namespace: k.CAPI.Namespace}
	}
	if s.world != nil {
		if known := s.world.KubeContext(); o.Context != "" && known != "" && o.Context != known {
			return fmt.Errorf("the sandbox %s has no context %q; it has: %s", s.env.sandboxDir(), o.Context, known)
		}
		o.URL, o.Token, o.Server = s.world.KubernetesURL(), s.world.KubernetesToken(), "the sandbox"
	}
	c, err := kubernetes.New(o)
	if err == nil {
		s.kubernetes = c
		s.closers = append(s.closers, c.Close)
	}
	return err
}

// client makes the client of hosts by the ssh block and, in the real world, the person's own ssh setup.
func (s *session) client(ctx context.Context) (*hosts.Client, []plan.FleetKey, error) {
	t := s.config.SSH.Timeouts
	o := hosts.Options{User: s.config.SSH.User, Via: s.config.SSH.Via, Starts: s.env.Starts, Log: s.env.logger,
		Deadlines: hosts.Deadlines{Dial: t.Dial, Handshake: t.Handshake, Question: t.Question, Change: t.Change,
			Exchange: t.Exchange, Silence: t.Silence, Undo: t.Undo},
		Progress: func(p hosts.Progress) { overssh.Sent(s.engine, p) }}
	s.opening.Store("ssh private_key")
	if err := s.fleetKey(ctx, &o); err != nil {
		return nil, nil, err
	}
	keys := fleetKeys(o)
	if s.world != nil {
		o.Dial = s.noting(s.world.DialContext)
		o.Tailnet = worldTailnet(s.world)
		return hosts.New(o), keys, nil
	}
	s.opening.Store("the SSH configuration")
	config, err := s.env.readSSHConfig()
	if err != nil {
		return nil, nil, err
	}
	o.Dial = s.noting((&net.Dialer{}).DialContext)
	o.Config, o.Agent = config.Lookup, os.Getenv("SSH_AUTH_SOCK")
	return hosts.New(o), keys, nil
}

// fleetKeys are the public halves of the keys that hosts accept, the present one first.
func fleetKeys(o hosts.Options) (out []plan.FleetKey) {
	if o.Key != nil {
		out = append(out, hosts.FleetKey(o.Key))
	}
	if o.Previous != nil {
		out = append(out, hosts.FleetKey(o.Previous))
	}
	return out
}

// fleetKey resolves the configuration's private keys. Without one a sandbox has its own, else the person's count.
func (s *session) fleetKey(ctx context.Context, o *hosts.Options) (err error) {
	ref, previous := s.config.SSH.PrivateKey, s.config.SSH.PreviousPrivateKey
	text := ""
	switch {
	case !ref.IsZero():
		o.KeySource = "secret " + ref.String()
		text, err = s.privateKey(ctx, "private_key", ref)
	case s.world != nil:
		o.KeySource = "the sandbox's own key"
		if text, err = s.world.SSHKey(); err != nil {
			err = fmt.Errorf("ssh key of the sandbox: %w", err)
		}
	case !previous.IsZero():
		return errors.New("ssh: previous_private_key is set without private_key; fix: set private_key to the new key")
	default:
		return nil
	}
	if err != nil {
		return err
	}
	if o.Key, err = hosts.ParsePrivateKey(text); err != nil {
		return fmt.Errorf("ssh private_key: %s: %w", o.KeySource, err)
	}
	if previous.IsZero() {
		return nil
	}
	if text, err = s.privateKey(ctx, "previous_private_key", previous); err != nil {
		return err
	}
	if o.Previous, err = hosts.ParsePrivateKey(text); err != nil {
		return fmt.Errorf("ssh previous_private_key: secret %s: %w", previous, err)
	}
	if key := hosts.FleetKey(o.Key); key == hosts.FleetKey(o.Previous) {
		return fmt.Errorf("ssh: private_key and previous_private_key are the same key %s; fix: set private_key to the new key, or remove previous_private_key", key.Fingerprint)
	}
	return nil
}

// privateKey resolves an argument of the ssh block.
func (s *session) privateKey(ctx context.Context, name string, ref secret.Ref) (string, error) {
	value, err := s.resolver().Resolve(ctx, ref)
	switch {
	case err != nil && ref.Scheme == secret.Kubernetes && kubernetes.Unanswered(err):
		return "", &engine.AwayError{Provider: engine.Kubernetes, Err: fmt.Errorf("ssh %s: %w", name, err)}
	case err != nil:
		return "", fmt.Errorf("ssh %s: %w", name, err)
	}
	return value.Reveal(), nil
}

// readSSHConfig asks ssh for the person's ssh configuration, or that of the file named
// instead. It returns nil where none is to count.
func (env *Env) readSSHConfig() (*sshconfig.Config, error) {
	if env.SSHConfig == "none" {
		return nil, nil
	}
	config, err := sshconfig.Read(env.SSHConfig)
	if errors.Is(err, sshconfig.ErrNoSSH) && env.SSHConfig == "" {
		if found := sshFiles(); len(found) > 0 {
			env.warn(fmt.Sprintf("%v, so %s has no effect; install OpenSSH's client, or pass --ssh-config none", err, strings.Join(found, " and ")))
		}
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the ssh configuration: %w; fix it, or name another with --ssh-config FILE (none reads no file)", err)
	}
	return config, nil
}

// sshFiles returns those of ssh's own files that exist.
func sshFiles() []string {
	files := []string{"/etc/ssh/ssh_config"}
	if home, err := os.UserHomeDir(); err == nil {
		files = append(files, filepath.Join(home, ".ssh", "config"))
	}
	return slices.DeleteFunc(files, func(name string) bool { _, err := os.Stat(name); return err != nil })
}
