package conformance

import (
	"regexp"
	"strings"
	"testing"
)

// These patterns find changes, in the commands of this table.
var (
	redirected = regexp.MustCompile(`>>?\s*([^\s;|&)}']+)`)
	fileWriter = regexp.MustCompile(`(^|[\s;|&(!])(mkdir|rmdir|mv|cp|ln|touch|mktemp|chmod|chown|tee|rm [^-]|rm -[a-z]*r|dd of=)`)
	setter     = regexp.MustCompile(`defaults (-currentHost )?(write|delete) [^"]|scutil --set|pmset -[abc] |systemsetup|launchctl|dscl \S+ -(authonly|passwd|delete|create|append|change)|pwpolicy|killall|sysadminctl -autologin (set|off)|sudo [^|;]*-S|nvram|softwareupdate|shutdown|reboot|pfctl [^|;\n]*-([edEFX]\b|f |T (add|delete|flush|kill))`)
	outside    = regexp.MustCompile(`>>?\s*["']?/(?:etc|Users|Library|var|usr|private)`)
	looking    = regexp.MustCompile(`launchctl (print|print-disabled|list|error) `)
)

// TestSafety checks that each row declares what it changes: a Mac that a person lends must be unchanged afterwards.
func TestSafety(t *testing.T) {
	t.Parallel()
	rows, err := Table(map[string]string{"watchdog": "a perl text"})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		text := r.If + "\n" + r.Script + strings.Join(r.Args, "\n")
		if why := undeclared(r.Changes, text); why != "" {
			t.Errorf("%s: %s declares that it changes %s, but: %s", r.File, r.ID(), r.Changes, why)
		}
	}
	reads, err := Reads()
	if err != nil {
		t.Fatal(err)
	}
	for tool, calls := range reads {
		for _, args := range calls {
			call := tool + " " + strings.Join(args, " ")
			if why := undeclared(Nothing, call); why != "" && len(args) > 0 {
				t.Errorf("the table says that %q changes nothing, but: %s", call, why)
			}
		}
	}
	for _, c := range []struct {
		changes Changes
		text    string
		unsafe  bool
	}{
		{Nothing, "echo x >f", true}, {Nothing, "echo x >/dev/null 2>&1", false}, {Nothing, "a; mkdir d", true}, {Nothing, "rm -rf /x", true},
		{Nothing, "rm -f", false}, {Files, "mkdir d; echo x >d/f", false}, {Files, "echo x >/etc/hosts", true}, {Files, "pmset -a sleep 0", true},
		{Nothing, "dscl . -authonly m1 x", true}, {Nothing, "echo x | sudo -k -S true", true}, {Nothing, "sudo -n true", false},
		{Files, `defaults write "$PWD/a" k x`, false}, {Files, "defaults write com.acme k x", true}, {Nothing, "launchctl print system/x", false},
		{Nothing, "launchctl print system/x; launchctl bootout system/x", true}, {Files, "launchctl kickstart system/x", true}, {Settings, "scutil --set HostName x", false},
		{Nothing, "pfctl -a x -f -", true}, {Nothing, "pfctl -E", true}, {Nothing, "pfctl -t t -T kill", true}, {Nothing, "pfctl -a x -vnf -", false}, {Nothing, "pfctl -sr", false},
	} {
		if why := undeclared(c.changes, c.text); (why != "") != c.unsafe {
			t.Errorf("undeclared(%s, %q) = %q", c.changes, c.text, why)
		}
	}
}

// undeclared returns what a script changes beyond what its row declares, or "".
func undeclared(changes Changes, text string) string {
	if changes == Settings {
		return ""
	}
	if found := setter.FindString(looking.ReplaceAllString(text, "")); found != "" {
		return found
	}
	if found := outside.FindString(text); found != "" {
		return found
	}
	if changes == Files {
		return ""
	}
	for _, m := range redirected.FindAllStringSubmatch(text, -1) {
		if m[1] != "/dev/null" && !strings.HasPrefix(m[1], "/nowhere-at-all") {
			return m[0]
		}
	}
	return fileWriter.FindString(text)
}
