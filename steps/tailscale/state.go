package tailscale

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/macfleet/macfleet/steps/kit"
	"github.com/macfleet/macfleet/steps/launchd"
)

// The states of the daemon's backend.
const (
	Running          = "Running"
	NeedsLogin       = "NeedsLogin"
	NeedsMachineAuth = "NeedsMachineAuth"
	Stopped          = "Stopped"
	Starting         = "Starting"
	NoState          = "NoState" // just started
)

// Status is what `tailscale status --json` says, as far as macfleet uses it. Exit codes of the client mean only that the daemon
// answers.
type Status struct {
	Version        string // of the running daemon, long form
	BackendState   string
	HaveNodeKey    bool
	TailscaleIPs   []string // still filled after the node key has expired
	Self           Self
	Health         []string // prose
	MagicDNSSuffix string
}

// Self is the daemon's own device. The tailnet may have none like it.
type Self struct {
	ID           string
	HostName     string
	DNSName      string // with a dot at its end; after a rejoin next to a stale device only it has the number
	TailscaleIPs []string
	Tags         []string
	Online       bool
	Expired      bool
}

// name is the first label of the MagicDNS name.
func (s Self) name() string {
	name, _, _ := strings.Cut(s.DNSName, ".")
	return name
}

func (s Self) address() string {
	if len(s.TailscaleIPs) == 0 {
		return "no address"
	}
	return s.TailscaleIPs[0]
}

// ParseStatus parses the output of `tailscale status --json`.
func ParseStatus(text string) (Status, error) {
	var s Status
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return Status{}, fmt.Errorf("malformed output of tailscale status --json: %w", err)
	}
	if s.BackendState == "" {
		return Status{}, fmt.Errorf("the output of tailscale status --json has no BackendState")
	}
	return s, nil
}

// Prefs are what `tailscale debug prefs` says, as far as macfleet uses it.
type Prefs struct {
	ControlURL  string
	WantRunning bool
	LoggedOut   bool
	CorpDNS     bool
	RouteAll    bool
	RunSSH      bool
	Hostname    string
}

// ParsePrefs parses the output of `tailscale debug prefs`.
func ParsePrefs(text string) (p Prefs, err error) {
	if err = json.Unmarshal([]byte(text), &p); err != nil {
		return Prefs{}, fmt.Errorf("malformed output of tailscale debug prefs: %w", err)
	}
	return p, nil
}

// seen is the state of Tailscale on a host.
type seen struct {
	daemon, client      kit.Receipt
	daemonFile, cliFile kit.InstalledFile
	plist               kit.FileState
	loaded              bool
	service             launchd.Service
	answers             bool // the daemon answers
	status              Status
	prefs               Prefs
	folder              bool // the state's folder exists
	keys                []string
	resolvers           []string
	kept                []string
	unfinished          bool // a program or the job was changed, and the daemon was not started again
	former              bool // the files from before a roll are kept
	free                int64
}

func read(r *kit.Reader, id string) seen {
	s := seen{free: kit.UnknownSpace}
	r.Parts(id, func(p kit.Part) (err error) {
		switch p.Name {
		case "file":
			mode, path, _ := strings.Cut(p.Of, " ")
			switch {
			case path == list:
				s.plist = kit.FileState{Text: p.Body, Mode: mode}
			case strings.HasSuffix(path, "/tailscale_client.receipt"):
				err = s.client.Read(p.Body)
			default:
				err = s.daemon.Read(p.Body)
			}
		case "daemon":
			err = s.daemonFile.Read(p)
		case "client":
			err = s.cliFile.Read(p)
		case "job":
			if err = kit.JobCode(p.Exit); err == nil {
				if s.loaded = p.Exit == 0; s.loaded {
					s.service, err = launchd.ParsePrint(strings.TrimLeft(p.Body, "\n"))
				}
			}
		case "status":
			if s.answers = p.Exit == 0; s.answers {
				s.status, err = ParseStatus(p.Body)
			}
		case "prefs":
			if p.Exit == 0 {
				s.prefs, err = ParsePrefs(p.Body)
			}
		case "folder":
			s.folder = true
		case "keys":
			s.keys = p.Lines()
		case "resolvers":
			s.resolvers = p.Lines()
		case "unfinished":
			s.unfinished = true
		case "former":
			s.former = true
		case "kept":
			s.kept = p.Lines()
		case "space":
			s.free = kit.FreeSpace(p)
		default:
			err = kit.ErrPart
		}
		return err
	})
	return s
}
