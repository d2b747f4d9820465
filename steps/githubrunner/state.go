package githubrunner

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/macfleet/macfleet/steps/kit"
	"github.com/macfleet/macfleet/steps/launchd"
)

// state is what a host says of its runner.
type state struct {
	receipt  receipt
	lists    []list
	folders  []folder
	session  bool                       // the login user is logged in at the screen
	services map[string]launchd.Service // jobs of runners that are loaded in the user's session, by label
	logs     map[string][]string        // lines that say what their listeners do, the oldest first
	work     []kit.Working
	workRead bool
	free     int64
}

// receipt is what macfleet recorded when it set up the runner.
type receipt struct {
	root, label, scope string
	made               bool // macfleet installed the programs
}

// list is a property list of a runner in the user's folder.
type list struct {
	label, root, sha, access string
}

// folder is a folder with a runner.
type folder struct {
	root, owner string
	sizes       map[string]int64 // of files by their names; missing ones have none
	settings    settings
	path        string // of its jobs
	version     string // of its listener; empty: unknown
}

// settings is the file .runner, or the refreshed one that GitHub sent later.
type settings struct {
	AgentID    int64  `json:"agentId"`
	AgentName  string `json:"agentName"`
	GitHubURL  string `json:"gitHubUrl"`
	WorkFolder string `json:"workFolder"`
	Ephemeral  bool   `json:"ephemeral"` // it is deleted after one job
}

// id returns the id of the entry at GitHub; empty: it is not registered.
func (s settings) id() string {
	if s.AgentID == 0 {
		return ""
	}
	return strconv.FormatInt(s.AgentID, 10)
}

// scope returns the address where the runner is registered, without a slash at its end.
func (s settings) scope() string { return strings.ToLower(strings.TrimRight(s.GitHubURL, "/")) }

// at reports whether the runner is registered at a scope. GitHub ignores the case of names.
func (s settings) at(scope string) bool { return s.AgentID != 0 && strings.EqualFold(s.scope(), scope) }

// mode returns how the runner is registered, as the configuration names it.
func (s settings) mode() string { return kit.Choose(s.Ephemeral, "ephemeral", "persistent") }

// Files of a runner.
const (
	settingsFile    = ".runner"
	migratedFile    = ".runner_migrated"
	credentialsFile = ".credentials"
	keyFile         = ".credentials_rsaparams"
	serviceFile     = "runsvc.sh"
	newServiceFile  = "bin/runsvc.sh"
	listenerFile    = "bin/Runner.Listener"
)

func (f folder) has(name string) bool { _, ok := f.sizes[name]; return ok }

// half reports whether a registration was interrupted: config.sh writes its files one after the other.
func (f folder) half() bool {
	whole := (f.has(settingsFile) || f.has(migratedFile)) && (f.has(credentialsFile) || f.has(credentialsFile+"_migrated")) && f.has(keyFile)
	any := f.has(settingsFile) || f.has(migratedFile) || f.has(credentialsFile) || f.has(keyFile)
	return any && (!whole || f.settings.AgentID == 0)
}

// read parses the answer of the probe.
func read(r *kit.Reader, id string) state {
	s := state{services: make(map[string]launchd.Service), logs: make(map[string][]string), free: kit.UnknownSpace}
	r.Parts(id, s.part)
	return s
}

func (s *state) part(p kit.Part) (err error) {
	switch p.Name {
	case "work":
		s.work, err = kit.Works(p)
		s.workRead = err == nil
	case "receipt":
		s.receipt = receipt{p.Value("root"), p.Value("label"), p.Value("scope"), p.Value("programs") == "made"}
	case "plist":
		access, path, _ := strings.Cut(p.Of, " ")
		name := path[strings.LastIndex(path, "/")+1:]
		s.lists = append(s.lists, list{label: strings.TrimSuffix(name, ".plist"), root: p.Value("root"), sha: p.Value("sha"), access: access})
	case "files":
		return s.files(p)
	case "settings":
		return s.inFolder(p, func(f *folder) error {
			return json.Unmarshal([]byte(strings.TrimPrefix(p.Body, byteOrderMark)), &f.settings)
		})
	case "path":
		return s.inFolder(p, func(f *folder) error { f.path = strings.TrimSpace(p.Body); return nil })
	case "version":
		return s.inFolder(p, func(f *folder) error { f.version = versionIn(p); return nil })
	case "domain":
		return s.domain(p)
	case "job":
		return s.launchd(p)
	case "log":
		s.logs[p.Of] = p.Lines()
	case "space":
		s.free = kit.FreeSpace(p)
	default:
		return kit.ErrPart
	}
	return err
}

// byteOrderMark starts the JSON files that .NET programs write.
const byteOrderMark = "\xef\xbb\xbf"

func (s *state) files(p kit.Part) error {
	owner, root, _ := strings.Cut(p.Of, " ")
	f := folder{root: root, owner: strings.Split(owner, ":")[0], sizes: make(map[string]int64)}
	for _, line := range p.Lines() {
		name, size, _ := strings.Cut(line, " ")
		n, err := strconv.ParseInt(size, 10, 64)
		if err != nil {
			return fmt.Errorf("malformed size %q", line)
		}
		f.sizes[name] = n
	}
	s.folders = append(s.folders, f)
	return nil
}

func (s *state) inFolder(p kit.Part, do func(*folder) error) error {
	i := slices.IndexFunc(s.folders, func(f folder) bool { return f.root == p.Of })
	if i < 0 {
		return kit.ErrPart
	}
	return do(&s.folders[i])
}

// versionIn returns the version that the listener printed. One that cannot be started has none.
func versionIn(p kit.Part) string {
	text := strings.TrimSpace(p.Body)
	if _, ok := parseVersion(text); !ok || p.Exit != 0 {
		return ""
	}
	return text
}

func (s *state) domain(p kit.Part) error {
	for _, line := range p.Lines() {
		words := strings.Fields(line)
		if len(words) == 2 && words[0] == "session" {
			s.session = words[1] == "Aqua"
		}
	}
	s.session = s.session && p.Exit == 0
	return nil // each release answers another code without a session
}

func (s *state) launchd(p kit.Part) error {
	if p.Exit != 0 {
		return nil // it is not loaded, or there is no session
	}
	service, err := launchd.ParsePrint(p.Body)
	s.services[p.Of] = service
	return err
}

// listOf returns the property list of a label.
func (s state) listOf(label string) (list, bool) {
	i := slices.IndexFunc(s.lists, func(l list) bool { return l.label == label })
	if i < 0 {
		return list{}, false
	}
	return s.lists[i], true
}

// chosen returns the folder of the runner with a label that is, or should be, registered at a scope: the one that its job
// names, the recorded one, one that is registered there, else the first. A runner that was set up by hand stays where it
// is.
func (s state) chosen(label, scope string) folder {
	named, _ := s.listOf(label)
	for _, is := range []func(folder) bool{
		func(f folder) bool { return f.root == named.root && f.has(listenerFile) },
		func(f folder) bool { return f.root == s.receipt.root },
		func(f folder) bool { return f.settings.at(scope) },
		func(f folder) bool { return f.has(listenerFile) && !s.used(f.root, label) },
	} {
		if i := slices.IndexFunc(s.folders, is); i >= 0 {
			return s.folders[i]
		}
	}
	return folder{}
}

// used reports whether a job with another label runs from a folder.
func (s state) used(root, label string) bool {
	return slices.ContainsFunc(s.lists, func(l list) bool { return l.root == root && l.label != label })
}

// labels returns the labels of all jobs that run from a folder, and the given one first.
func (s state) labels(root, label string) []string {
	var out []string
	if label != "" {
		out = append(out, label)
	}
	for _, l := range s.lists {
		if l.root == root && l.label != label {
			out = append(out, l.label)
		}
	}
	return out
}

// others returns the labels of loaded runners that run from other folders.
func (s state) others(root, label string) []string {
	var out []string
	for other := range s.services {
		if l, listed := s.listOf(other); other != label && (!listed || l.root != root) {
			out = append(out, other)
		}
	}
	slices.Sort(out)
	return out
}

// version is a version of the runner.
type version [3]int

func parseVersion(text string) (v version, ok bool) {
	parts := strings.Split(text, ".")
	if len(parts) != len(v) {
		return v, false
	}
	for i, part := range parts {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 {
			return v, false
		}
		v[i] = n
	}
	return v, true
}

// before reports whether a version is older than another. An unknown one is not.
func before(one, other string) bool {
	a, ok := parseVersion(one)
	b, known := parseVersion(other)
	return ok && known && slices.Compare(a[:], b[:]) < 0
}
