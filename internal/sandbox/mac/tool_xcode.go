package mac

import (
	"path"
	"strings"
)

// Where macOS keeps which developer tools are selected, where they are, and whose licence was accepted.
const (
	developerLink = "/private/var/db/xcode_select_link"
	stockXcode    = "/Applications/Xcode.app"
	toolsOnly     = "/Library/Developer/CommandLineTools"
	xcodePlist    = "/Library/Preferences/com.apple.dt.Xcode.plist"
	licenceKey    = "IDELastGMLicenseAgreedTo"
)

// developerDir returns the selected developer folder; empty: there is none.
func (v *visit) developerDir() string {
	root := v.session.users()[0]
	if n, err := v.find(root, "/", developerLink, false); err == nil {
		if to, err := v.readlink(n); err == nil {
			return to
		}
	}
	for _, dir := range []string{stockXcode + "/Contents/Developer", toolsOnly} {
		if v.exists(dir) {
			return dir
		}
	}
	return ""
}

// xcodeSelect shows or sets the selected developer folder.
func xcodeSelect(p *proc) int {
	args := p.args()
	fail := func(text string, code int) int {
		_, _ = p.stderr.Write([]byte("xcode-select: error: " + text + "\n"))
		return code
	}
	switch {
	case len(args) == 1 && (args[0] == "-p" || args[0] == "--print-path"):
		dir := ""
		if err := p.visit(func(v *visit) error { dir = v.developerDir(); return nil }); err != nil {
			return p.fail(exitFailed, "%s", err)
		}
		if dir == "" {
			return fail("unable to get active developer directory, use `sudo xcode-select --switch path/to/Xcode.app` to set one (or see `man xcode-select`)", 2)
		}
		p.printf("%s\n", dir)
		return 0
	case len(args) == 2 && (args[0] == "-s" || args[0] == "--switch"):
	default:
		return p.unmodelled(strings.Join(args, " "))
	}
	if p.user.uid != 0 {
		return fail("--switch must be run as root (e.g. `sudo xcode-select --switch <xcode_folder_path>`).", 1)
	}
	to, ok := p.absolute(args[1]), false
	err := p.visit(func(v *visit) error {
		if inside := to + "/Contents/Developer"; v.exists(inside) {
			to = inside
		}
		if ok = v.exists(to); !ok {
			return nil
		}
		root := v.rootProc()
		if n, err := v.find(root.user, "/", developerLink, false); err == nil {
			if err := v.removeAll(root.user, n); err != nil {
				return err
			}
		}
		if err := v.mkdirAll(root, path.Dir(developerLink), 0o755); err != nil {
			return err
		}
		n, err := v.resolve(root.user, "/", developerLink, false)
		if err != nil {
			return err
		}
		return v.symlink(root, to, n)
	})
	switch {
	case err != nil:
		return p.fail(exitFailed, "%s", err)
	case !ok:
		return fail("invalid developer directory '"+args[1]+"'", 1)
	}
	return 0
}

// xcodebuild checks and accepts the licence; builds are not modelled.
func xcodebuild(p *proc) int {
	const notAccepted = 69
	words := strings.Join(p.args(), " ")
	if words != "-license check" && words != "-license accept" {
		return p.unmodelled(words)
	}
	dir, accepted := p.env["DEVELOPER_DIR"], false
	err := p.visit(func(v *visit) error {
		if dir == "" {
			dir = v.developerDir()
		}
		values, err := v.readPlist(xcodePlist)
		if err != nil {
			return err
		}
		if _, accepted = values[licenceKey]; words == "-license check" || p.user.uid != 0 || !strings.HasSuffix(dir, "/Contents/Developer") {
			return nil
		}
		values[licenceKey] = "EA1957"
		return v.writePlist(xcodePlist, values, owner{Mode: 0o644})
	})
	switch {
	case err != nil:
		return p.fail(exitFailed, "%s", err)
	case !strings.HasSuffix(dir, "/Contents/Developer"):
		_, _ = p.stderr.Write([]byte("xcode-select: error: tool 'xcodebuild' requires Xcode, but active developer directory '" + dir + "' is a command line tools instance\n"))
		return 1
	case words == "-license check" && !accepted:
		return notAccepted
	case words == "-license accept" && p.user.uid != 0:
		_, _ = p.stderr.Write([]byte("Must be run as root\n")) // the real text is not known
		return 1
	}
	return 0
}
