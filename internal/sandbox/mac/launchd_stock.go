package mac

import (
	"cmp"
	"path"
	"slices"
)

// stockFolder holds the property lists of the system's own services.
const stockFolder = "/System/Library/LaunchDaemons"

// stockService is one of the system's own services: it is loaded unless someone has booted it out.
type stockService struct {
	label, file, program string
	pid                  int  // 0: it has no process
	ran                  bool // it has run at the start
}

func stockServices() []stockService {
	return []stockService{
		{label: "com.apple.backgroundtaskmanagementd", file: "com.apple.backgroundtaskmanagementd.plist",
			program: "/System/Library/PrivateFrameworks/BackgroundTaskManagement.framework/Resources/backgroundtaskmanagementd", pid: 118},
		{label: loginwindowLabel, file: "com.apple.loginwindow.plist", program: "/System/Library/CoreServices/loginwindow.app/Contents/MacOS/loginwindow", pid: 164},
		{label: pfLabel, file: "com.apple.pfctl.plist", program: "/sbin/pfctl", ran: true},
		// launchd itself listens, and starts an sshd for each connection.
		{label: "com.openssh.sshd", file: "ssh.plist", program: "/usr/libexec/sshd-keygen-wrapper"},
	}
}

// Labels of services with modelled behaviour.
const (
	loginwindowLabel = "com.apple.loginwindow"
	pfLabel          = "com.apple.pfctl"
)

func isStock(label string) bool {
	return slices.ContainsFunc(stockServices(), func(s stockService) bool { return s.label == label })
}

// stockPath returns the label of the service with this property list.
func stockPath(name string) (string, bool) {
	all := stockServices()
	i := slices.IndexFunc(all, func(s stockService) bool { return path.Clean(name) == stockFolder+"/"+s.file })
	if i < 0 {
		return "", false
	}
	return all[i].label, true
}

// reload loads one of the system's services again.
func (m *manager) reload(label string) error {
	i := slices.Index(m.Unloaded, label)
	if i < 0 {
		return launchCode(5)
	}
	m.Unloaded = slices.Delete(m.Unloaded, i, i+1)
	return nil
}

// runsStock reports whether a label is a loaded service of the system.
func (m *manager) runsStock(label string) bool {
	return isStock(label) && !slices.Contains(m.Unloaded, label)
}

// stockJobs returns the system's loaded services as jobs.
func (v *visit) stockJobs(m *manager) ([]*job, error) {
	var all []*job
	for _, s := range stockServices() {
		if !m.runsStock(s.label) {
			continue
		}
		j := &job{Domain: "system", Path: stockFolder + "/" + s.file, PID: s.pid,
			About: description{Label: s.label, Program: s.program, Args: []string{s.program}, Throttle: throttle, ExitWithin: exitTimeout}}
		if s.ran {
			j.Last = &ending{}
		}
		if s.label == loginwindowLabel {
			alive, err := v.loginwindowAlive()
			if err != nil {
				return nil, err
			}
			if m.Login != 0 {
				j.PID = m.Login
			}
			if !alive {
				j.PID, j.Last = 0, &ending{}
			}
		}
		if j.PID != 0 || s.ran {
			j.Runs = 1
		}
		all = append(all, j)
	}
	return all, nil
}

// jobs returns the jobs of a domain, or of all for "", with the system's own, by label.
func (v *visit) jobs(m *manager, domain string) ([]*job, error) {
	var all []*job
	if domain == "" || domain == "system" {
		own, err := v.stockJobs(m)
		if err != nil {
			return nil, err
		}
		all = own
	}
	for _, j := range m.Jobs {
		if domain == "" || j.Domain == domain {
			all = append(all, j)
		}
	}
	slices.SortFunc(all, func(a, b *job) int {
		return cmp.Or(cmp.Compare(a.About.Label, b.About.Label), cmp.Compare(a.Domain, b.Domain))
	})
	return all, nil
}

// service finds a loaded job.
func (v *visit) service(m *manager, d domain, label string) (*job, error) {
	all, err := v.jobs(m, d.String())
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(all, func(j *job) bool { return j.About.Label == label }); i >= 0 {
		return all[i], nil
	}
	return nil, launchCode(113)
}
