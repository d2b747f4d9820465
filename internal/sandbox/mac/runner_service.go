package mac

import (
	"fmt"
	"os"
	"path"
	"strings"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox/agent"
)

// Times of the listener and of the service that starts it again.
const (
	polls          = 50 * time.Second // a poll for messages, at whose end the listener learns that its entry is gone
	conflictLasts  = 240 * time.Second
	clockLasts     = 30 * time.Minute
	conflictEvery  = 30 * time.Second
	updatesAfter   = time.Minute
	restartsAfter  = 5 * time.Second
	stopsIdle      = 8 * time.Second  // how long it takes to close its session
	stopsBusy      = 30 * time.Second // how long it takes to cancel a job
	sessionStays   = 4 * time.Minute  // how long GitHub keeps the session of a listener that was killed
	mostFailedRuns = 10
)

// listener is the process of GitHub's runner in a job of launchd.
type listener struct {
	agent.Runner
	Root   string        `json:"root"`
	Diag   string        `json:"diag"` // its log
	Node   int           `json:"node"` // pid of the service; PID is the listener's
	Worker int           `json:"worker,omitempty"`
	State  agent.Verdict `json:"state"`
	Since  time.Time     `json:"since"`  // when the state was entered
	Polled time.Time     `json:"polled"` // when GitHub was last contacted
	Fails  int           `json:"fails,omitempty"`
	Again  time.Time     `json:"again,omitzero"` // when the service starts the listener again
}

// Exit codes of the listener.
const (
	exitTerminatedError = 1
	exitRetryable       = 2
	exitUpdating        = 3
	exitConflict        = 5
)

// stopsService reports whether the service stops for good when the listener exits with a code, instead of starting it
// again.
func stopsService(code, failed int) bool {
	switch code {
	case 0, exitTerminatedError, exitConflict:
		return true
	case exitRetryable, exitUpdating, 4:
		return failed >= mostFailedRuns
	}
	return false
}

// runNode is the interpreter that runs the runner's service.
func (p *proc) runNode(name string, head []byte) int {
	if len(p.args()) == 1 && p.argv[1] == "--version" {
		p.printf("v%s\n", codeValue(head, "version"))
		return 0
	}
	if len(p.args()) != 1 || path.Base(p.argv[1]) != "RunnerService.js" || p.under == nil {
		return p.unmodelled("node " + strings.Join(p.args(), " "))
	}
	p.watched()
	c := runnerCall{proc: p, root: path.Dir(path.Dir(p.absolute(p.argv[1])))}
	c.say("Starting Runner listener with startup type: service\nStarted listener process")
	l, code := c.listen()
	if l == nil {
		c.say("Runner listener exited with error code %d", code)
		if stopsService(code, 0) {
			c.say("Runner listener exit with terminated error, stop the service, no retry needed.")
			return 0
		}
		p.under.stay()
		return exitTerminated
	}
	p.under.listener = l
	p.under.stay()
	return exitTerminated
}

// listen starts the listener. Without one it returns the exit code.
func (c runnerCall) listen() (*listener, int) {
	var own runnerSettings
	var credentials runnerCredentials
	var head []byte
	err := c.visit(func(v *visit) error {
		n, err := v.find(c.user, "/", c.at("bin/"+listenerProgram), true)
		if err == nil {
			head, err = v.code(n)
		}
		return err
	})
	if err != nil {
		c.say("Error: spawn %s ENOENT", c.at("bin/"+listenerProgram))
		return nil, exitRetryable
	}
	if c.newest(runnerFile, &own) != nil || c.newest(credentialsFile, &credentials) != nil || !c.has(keyFile) {
		c.say("An error occurred: Not configured. Run config.(sh/cmd) to configure the runner.")
		return nil, exitTerminatedError
	}
	now := c.now()
	l := &listener{Root: c.root, Diag: c.at("_diag/Runner_" + now.UTC().Format("20060102-150405") + "-utc.log"),
		State: agent.Listens, Since: now, Polled: now,
		Runner: agent.Runner{ID: own.AgentID, Client: credentials.Data["clientId"], Version: codeValue(head, "version")}}
	if c.runners() == nil {
		return nil, exitRetryable
	}
	verdict, _, err := c.runners().Session(l.Runner, now)
	if err != nil {
		c.say("%s", err)
		return nil, exitRetryable
	}
	lines, code := l.enter(verdict, now)
	if err := c.log(l, lines); err != nil || code >= 0 {
		return nil, code
	}
	return l, 0
}

// log adds lines to the output of the job, and to the listener's own log.
func (c runnerCall) log(l *listener, lines []string) error {
	text := ""
	for _, line := range lines {
		c.say("%s", line)
		text += "[" + c.now().UTC().Format("2006-01-02 15:04:05Z") + " INFO Terminal] WRITE LINE: " + line + "\n"
	}
	return c.visit(func(v *visit) error {
		if err := v.mkdirAll(c.proc, path.Dir(l.Diag), 0o755); err != nil {
			return err
		}
		return v.writeAs(c.proc, l.Diag, []byte(text), os.O_APPEND, 0o644)
	})
}

// clockText is the time in the listener's output.
func clockText(now time.Time) string { return now.UTC().Format("2006-01-02 15:04:05Z") }

// enter changes the listener's state to what GitHub answers. It returns what it prints, and the exit code if it ends,
// else -1.
func (l *listener) enter(verdict agent.Verdict, now time.Time) (lines []string, code int) {
	say := func(format string, args ...any) {
		lines = append(lines, clockText(now)+": "+fmt.Sprintf(format, args...))
	}
	had := l.Listening
	if verdict != l.State {
		l.State, l.Since = verdict, now
	}
	l.Polled, l.Listening = now, verdict == agent.Listens
	switch verdict {
	case agent.Listens:
		if !had {
			lines = append(lines, "", "√ Connected to GitHub", "", "Current runner version: '"+l.Version+"'")
			say("Listening for Jobs")
			l.Fails = 0
		}
	case agent.Deleted:
		if had {
			say("The runner no longer exists on the server. The runner registration has been deleted from the server, please re-configure. Runner registrations are automatically deleted for runners that have not connected to the service recently.")
			return lines, exitTerminatedError
		}
		lines = append(lines, "Failed to create a session. The runner registration has been deleted from the server, please re-configure. Runner registrations are automatically deleted for runners that have not connected to the service recently.")
		return lines, exitTerminatedError
	case agent.Deprecated:
		lines = append(lines, "An error occurred: Runner version v"+l.Version+" is deprecated and cannot receive messages.")
		return lines, exitTerminatedError
	case agent.Conflicts:
		lines = append(lines, "A session for this runner already exists.")
		if now.Sub(l.Since) >= conflictLasts {
			say("Stop retry on SessionConflictException after retried for 240 seconds.")
			return lines, exitConflict
		}
		say("Runner connect error: Error: Conflict. Retrying until reconnected.")
	case agent.WrongClock:
		say("The local machine's clock may be out of sync with the server time by more than five minutes. Please sync your clock with your domain or internet time and try again.")
		if now.Sub(l.Since) >= clockLasts {
			return lines, exitTerminatedError
		}
	}
	return lines, -1
}

// listenerProcesses returns the processes below a job that runs a listener.
func (j *job) listenerProcesses(uid int) []process {
	l := j.listens()
	if l == nil {
		return nil
	}
	all := []process{{pid: l.Node, parent: j.PID, uid: uid, started: j.Started, args: []string{"./externals/node20/bin/node", "./bin/RunnerService.js"}}}
	if l.Again.IsZero() {
		all = append(all, process{pid: l.PID, parent: l.Node, uid: uid, started: j.Started, args: []string{l.Root + "/bin/" + listenerProgram, "run", "--startuptype", "service"}})
	}
	if l.Worker != 0 {
		all = append(all, process{pid: l.Worker, parent: l.PID, uid: uid, started: j.Started, args: []string{l.Root + "/bin/Runner.Worker", "spawnclient", "121", "124"}})
	}
	return all
}

// every is how long the listener waits until it contacts GitHub again.
func (l *listener) every() time.Duration {
	if l.State == agent.Listens {
		return polls
	}
	return conflictEvery
}

// due reports whether the listener contacts GitHub now.
func (l *listener) due(now time.Time) bool {
	if !l.Again.IsZero() {
		return !now.Before(l.Again)
	}
	return !now.Before(l.Polled.Add(l.every()))
}
