package mac

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// stock is a file, folder or link of a new Mac. Without mode it has the mode of a file that is not in
// the ledger.
type stock struct {
	path  string
	owner owner
	link  string
	data  []byte
}

const sudoers = `# The system's sudo policy.
Defaults env_reset
Defaults env_keep += "LANG LANGUAGE LC_ALL LC_CTYPE TZ SSH_AUTH_SOCK HOME MAIL"
root ALL = (ALL) ALL
%admin ALL = (ALL) ALL
#includedir /private/etc/sudoers.d
`

// manufacture fills an empty folder with a new machine.
func manufacture(dir string, f Factory) error {
	if err := os.Mkdir(filepath.Join(dir, rootFolder), 0o755); err != nil {
		return err
	}
	folders, files, err := stocks(f)
	if err != nil {
		return err
	}
	files = append(files, links()...)
	entries := map[string]entry{}
	for path, o := range bareOwners() {
		entries[path] = entry{owner: o}
	}
	for _, s := range append(folders, files...) {
		if err := s.put(filepath.Join(dir, rootFolder)); err != nil {
			return err
		}
		if s.owner.Mode != 0 {
			entries[s.path] = entry{owner: s.owner}
		}
	}
	id := identity{Serial: f.Serial, HardwareUUID: f.HardwareUUID, OSVersion: f.OSVersion, OSBuild: f.OSBuild, Type: f.Type,
		User: f.User, Password: f.Password, Booted: time.Now().UTC().Truncate(time.Second), Lives: f.Lives}
	about, err := json.MarshalIndent(id, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", identityFile, err)
	}
	book, err := encodeLedger(entries)
	if err != nil {
		return err
	}
	key, err := newHostKey()
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, identityFile), append(about, '\n'), 0o600),
		os.WriteFile(filepath.Join(dir, ledgerFile), book, 0o600),
		os.WriteFile(filepath.Join(dir, hostKeyFile), key, 0o600),
	)
}

func (s stock) put(root string) error {
	path := filepath.Join(root, s.path)
	switch {
	case s.link != "":
		return os.Symlink(s.link, path)
	case s.data != nil:
		return os.WriteFile(path, s.data, 0o644)
	default:
		return os.Mkdir(path, 0o755)
	}
}

func links() []stock {
	return []stock{
		{path: "/etc", link: "private/etc"}, {path: "/tmp", link: "private/tmp"}, {path: "/var", link: "private/var"},
	}
}

// folders are the folders of a new Mac that are created at once, parents first: those with content.
func folders(home string) []stock {
	private := owner{UID: loginUID, GID: staff, Mode: 0o700}
	return []stock{
		{path: "/private"}, {path: "/private/etc"}, {path: "/private/etc/sudoers.d"}, pfFolder(), {path: "/private/tmp"}, {path: "/private/var"},
		{path: "/Library"}, {path: "/Library/Preferences"}, {path: "/Library/Preferences/SystemConfiguration"},
		{path: "/Applications"}, {path: stockXcode}, {path: stockXcode + "/Contents"}, {path: stockXcode + "/Contents/Developer"},
		{path: "/Users"}, {path: home, owner: owner{UID: loginUID, GID: staff, Mode: 0o750}}, {path: home + "/.ssh", owner: private},
	}
}

// bareFolders are the folders of a Mac that are created on demand. Until then only the Mac sees them:
// creating folders is by far the slowest part of creating a machine.
func bareFolders() []string {
	return []string{"/Library/LaunchAgents", "/Library/LaunchDaemons", "/Users/Shared", "/bin", "/sbin", "/opt",
		"/usr", "/usr/bin", "/usr/sbin", "/usr/local", "/usr/local/bin", "/private/var/db", "/private/var/log", "/private/var/empty",
		"/private/var/run",
		"/private/var/tmp", "/private/var/root", "/private/var/root/Library", "/private/var/root/Library/Preferences"}
}

// everyBare are the bare folders, created once: no machine changes them.
var everyBare = sync.OnceValue(func() map[string]bool {
	all := map[string]bool{}
	for _, folder := range bareFolders() {
		all[folder] = true
	}
	return all
})

// bareOwners are the owners of bare folders that do not belong to root.
func bareOwners() map[string]owner {
	return map[string]owner{
		"/Users/Shared": {Mode: 0o777 | sticky}, "/private/tmp": {Mode: 0o777 | sticky}, "/private/var/tmp": {Mode: 0o777 | sticky},
		"/private/var/root": {Mode: 0o750}, "/private/var/root/Library": {Mode: 0o700}, "/private/var/root/Library/Preferences": {Mode: 0o700},
	}
}

func stocks(f Factory) ([]stock, []stock, error) {
	home := "/Users/" + f.User
	power, err := encodePlist(map[string]any{mains: factoryPower()})
	if err != nil {
		return nil, nil, err
	}
	names, err := encodePlist(map[string]any{"System": map[string]any{
		"System":  map[string]any{"ComputerName": "Mac mini"},
		"Network": map[string]any{"HostNames": map[string]any{"LocalHostName": "Mac-mini"}},
	}})
	if err != nil {
		return nil, nil, err
	}
	readOnly := owner{Mode: 0o440}
	files := append(pfStock(), []stock{
		{path: "/private/etc/sudoers", owner: readOnly, data: []byte(sudoers)},
		{path: powerPlist, data: power},
		{path: namesPlist, data: names},
		{path: providerKeys(f.User), owner: owner{UID: loginUID, GID: staff, Mode: 0o600}, data: keyLines(f.AuthorizedKeys)},
	}...)
	if f.PasswordlessSudo {
		files = append(files, stock{path: "/private/etc/sudoers.d/" + f.User + "-nopasswd", owner: readOnly,
			data: []byte(f.User + " ALL=(ALL) NOPASSWD: ALL\n")})
	}
	return folders(home), files, nil
}

// sticky is the bit of folders in which users may delete only their own files.
const sticky fs.FileMode = 0o1000
