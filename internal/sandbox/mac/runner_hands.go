package mac

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox/agent"
)

// RunnerState is GitHub's runner on a machine.
type RunnerState struct {
	Root   string // its folder
	Name   string // in .runner; "" = it is not configured
	ID     int64  // in .runner
	Client string // in .credentials

	Target    string // of the job that runs it; "" = none does
	Version   string // of the listener that runs
	Installed string // the version of the program in bin
	Job       string // the workflow's job that it runs; "" = none
	State     agent.Verdict
	PID       int // of the listener; 0 = none runs
}

// ErrNoRunner is returned for a machine without GitHub's runner.
var ErrNoRunner = errors.New("the host has no GitHub runner")

// Runner returns GitHub's runner on the machine: the one of a loaded job, or the one in a folder of the login user.
func (m *Machine) Runner() (state RunnerState, err error) {
	err = m.asRoot(func(v *visit, p *proc) error {
		held, _, err := v.launchd()
		if err != nil {
			return err
		}
		for _, target := range slices.Sorted(maps.Keys(held.Jobs)) {
			j := held.Jobs[target]
			if path.Base(j.About.Program) != "runsvc.sh" || j.leaving() {
				continue
			}
			state.Root, state.Target = path.Dir(j.About.Program), target
			if l := j.listens(); l != nil {
				state.Version, state.Job, state.State, state.PID = l.Version, l.Runner.Job, l.State, l.PID
			}
		}
		if state.Root == "" {
			if state.Root, err = v.runnerFolder(); err != nil {
				return err
			}
		}
		state.Installed = v.programVersion(state.Root+"/bin/"+listenerProgram, "")
		return nil
	})
	if err == nil {
		err = m.identifyRunner(&state)
	}
	if err != nil {
		return state, fmt.Errorf("the runner of the machine in %s: %w", m.dir, err)
	}
	return state, nil
}

// identifyRunner reads what the runner's files say.
func (m *Machine) identifyRunner(state *RunnerState) error {
	s, err := m.session()
	if err != nil {
		return err
	}
	defer s.close()
	c := runnerCall{proc: &proc{session: s, user: s.users()[0], dir: "/"}, root: state.Root}
	var own runnerSettings
	var credentials runnerCredentials
	if c.newest(runnerFile, &own) == nil {
		state.Name, state.ID = own.AgentName, own.AgentID
	}
	if c.newest(credentialsFile, &credentials) == nil {
		state.Client = credentials.Data["clientId"]
	}
	return nil
}

// runnerFolder finds a runner in the home of the login user.
func (v *visit) runnerFolder() (string, error) {
	home := v.session.loginUser().home
	n, err := v.find(v.session.users()[0], "/", home, true)
	if err != nil {
		return "", err
	}
	in, err := v.list(v.session.users()[0], n)
	if err != nil {
		return "", err
	}
	for _, one := range in {
		if v.exists(one.path+"/"+runnerFile) || v.exists(one.path+"/bin/"+listenerProgram) {
			return one.path, nil
		}
	}
	return "", ErrNoRunner
}

// StartWork starts a workflow's job on the machine's runner, which must have a session.
func (m *Machine) StartWork(name string) error {
	return m.changeRunner(func(v *visit, held *manager, j *job, now time.Time) error {
		if !j.Runner.Listening {
			return errors.New("its listener has no session")
		}
		j.Runner.Runner.Job, j.Runner.Worker = name, held.newPID()
		return v.logRunner(j, clockText(now)+": Running job: "+name)
	})
}

// FinishWork ends the workflow's job on the machine's runner. None is not an error.
func (m *Machine) FinishWork() error {
	return m.changeRunner(func(v *visit, _ *manager, j *job, now time.Time) error {
		name := j.Runner.Runner.Job
		if name == "" {
			return nil
		}
		j.Runner.Runner.Job, j.Runner.Worker = "", 0
		return v.logRunner(j, clockText(now)+": Job "+name+" completed with result: Succeeded")
	})
}

// PollRunner lets the listener contact GitHub at the next read of the machine, as if its present poll had ended.
func (m *Machine) PollRunner() error {
	return m.changeRunner(func(_ *visit, _ *manager, j *job, _ time.Time) error {
		j.Runner.Polled = time.Time{}
		return nil
	})
}

// MigrateRunner refreshes the runner's settings and credentials, as GitHub does with a running listener: it writes copies
// with the same identity, which the listener prefers.
func (m *Machine) MigrateRunner() error {
	state, err := m.Runner()
	if err != nil {
		return err
	}
	for _, name := range []string{runnerFile, credentialsFile} {
		data, err := m.ReadFile(state.Root + "/" + name)
		if err != nil {
			return err
		}
		if err := m.WriteFile(state.Root+"/"+name+migratedSuffix, data, loginUID, staff, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// EndListener ends the listener with an exit code. The service starts it again, or stops for good.
func (m *Machine) EndListener(code int) error {
	state, err := m.Runner()
	if err != nil {
		return err
	}
	s, err := m.session()
	if err != nil {
		return err
	}
	defer s.close()
	return s.endListener(state.Target, 0, code)
}

// UpdateRunner updates the runner's programs to a version. A broken update leaves an empty runsvc.sh.
func (m *Machine) UpdateRunner(ctx context.Context, version string, broken bool) error {
	state, err := m.Runner()
	if err != nil {
		return err
	}
	s, err := m.session()
	if err != nil {
		return err
	}
	defer s.close()
	one := listening{target: state.Target, user: s.loginUser(), listener: listener{Root: state.Root, Runner: agent.Runner{Version: state.Installed}}}
	return s.updateRunner(ctx, one, version, broken)
}

// logRunner adds lines to the output of a runner's job.
func (v *visit) logRunner(j *job, lines ...string) error {
	who, _ := v.session.jobUser(j)
	return v.logListener(j, who, lines)
}

func (m *Machine) changeRunner(change func(*visit, *manager, *job, time.Time) error) error {
	state, err := m.Runner()
	if err != nil {
		return err
	}
	err = m.asRoot(func(v *visit, _ *proc) error {
		return v.changeLaunchd(func(held *manager, now time.Time) error {
			j, ok := held.Jobs[state.Target]
			if !ok || j.listens() == nil {
				return errors.New("no listener runs")
			}
			return change(v, held, j, now)
		})
	})
	if err != nil {
		return fmt.Errorf("the runner of the machine in %s: %w", m.dir, err)
	}
	return nil
}
