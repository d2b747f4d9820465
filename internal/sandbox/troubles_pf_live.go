package sandbox

import (
	"context"
	"regexp"
	"strconv"
	"strings"

	"github.com/macfleet/macfleet/internal/sandbox/mac"
)

// rememberAnchor records the anchor's name, whether it has rules and whether the main ruleset calls
// it.
func rememberAnchor(ctx context.Context, v *victim) error {
	name, err := v.anchor(ctx)
	if err != nil {
		return err
	}
	rules, err := v.anchorRules(ctx, name)
	if err != nil {
		return err
	}
	main, err := v.mainRules(ctx)
	if err != nil {
		return err
	}
	v.record.Settings = map[string]string{
		"anchor": name, "loaded": strconv.FormatBool(rules != ""), "point": strconv.FormatBool(len(pointsTo(main, name)) > 0),
	}
	return nil
}

// anchorRules returns the live rules of an anchor; a missing anchor has none.
func (v *victim) anchorRules(ctx context.Context, anchor string) (string, error) {
	return v.run(ctx, "pfctl -a "+quote(anchor)+" -sr 2>/dev/null || true")
}

// mainRules returns the live main ruleset in the order that a file needs.
func (v *victim) mainRules(ctx context.Context) ([]string, error) {
	text, err := v.run(ctx, "pfctl -sr 2>/dev/null | grep '^scrub' || true; pfctl -sn 2>/dev/null; pfctl -s dummynet 2>/dev/null; pfctl -sr 2>/dev/null | grep -v '^scrub' || true")
	return strings.Split(text, "\n"), err
}

// pointsTo returns the lines of the main ruleset that call an anchor.
func pointsTo(rules []string, anchor string) []string {
	var found []string
	for _, line := range rules {
		if strings.HasPrefix(line, `anchor "`+anchor+`"`) {
			found = append(found, line)
		}
	}
	return found
}

// loadMain replaces the main ruleset. Persistent tables without a definition in it remain.
func (v *victim) loadMain(ctx context.Context, rules []string) error {
	_, err := v.run(ctx, "printf '%s\\n' "+quote(strings.Join(rules, "\n"))+" | pfctl -q -f -")
	return err
}

// load loads the anchor's file if it exists.
func (v *victim) load(ctx context.Context, anchor string) error {
	file := quote(pfAnchors + anchor)
	_, err := v.run(ctx, "if [ -f "+file+" ]; then pfctl -q -a "+quote(anchor)+" -f "+file+"; fi")
	return err
}

func flushAnchor(ctx context.Context, v *victim) error {
	_, err := v.run(ctx, "pfctl -a "+quote(v.record.Settings["anchor"])+" -F rules")
	return err
}

func anchorFlushed(ctx context.Context, v *victim) (bool, error) {
	rules, err := v.anchorRules(ctx, v.record.Settings["anchor"])
	return err == nil && rules == "", err
}

func reloadAnchor(ctx context.Context, v *victim) error {
	flushed, err := anchorFlushed(ctx, v)
	if err != nil || !flushed || v.record.Settings["loaded"] != "true" {
		return err
	}
	return v.load(ctx, v.record.Settings["anchor"])
}

// dropPoint loads the main ruleset without the lines that call the anchor, and loads the anchor if its
// rules are missing.
func dropPoint(ctx context.Context, v *victim) error {
	name := v.record.Settings["anchor"]
	if v.record.Settings["loaded"] != "true" {
		if err := v.load(ctx, name); err != nil {
			return err
		}
	}
	main, err := v.mainRules(ctx)
	if err != nil {
		return err
	}
	points := pointsTo(main, name)
	if len(points) == 0 {
		return nil
	}
	kept := strings.Join(main, "\n") + "\n"
	for _, line := range points {
		kept = strings.ReplaceAll(kept, line+"\n", "")
	}
	return v.loadMain(ctx, strings.Split(strings.TrimSuffix(kept, "\n"), "\n"))
}

func pointGone(ctx context.Context, v *victim) (bool, error) {
	main, err := v.mainRules(ctx)
	return err == nil && len(pointsTo(main, v.record.Settings["anchor"])) == 0, err
}

func restorePoint(ctx context.Context, v *victim) error {
	gone, err := pointGone(ctx, v)
	if err != nil || !gone || v.record.Settings["point"] != "true" {
		return err
	}
	main, err := v.mainRules(ctx)
	if err != nil {
		return err
	}
	return v.loadMain(ctx, append(main, `anchor "`+v.record.Settings["anchor"]+`" all`))
}

var tableLine = regexp.MustCompile(`(?m)^[ \t]*table[ \t]*<([^>]+)>`)

// tableNames returns the tables that the anchor's file defines.
func (v *victim) tableNames(ctx context.Context) ([]string, error) {
	text, err := v.run(ctx, "cat "+quote(pfAnchors+v.record.Settings["anchor"])+" 2>/dev/null || true")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, found := range tableLine.FindAllStringSubmatch(text, -1) {
		names = append(names, found[1])
	}
	if len(names) == 0 {
		return []string{"vm_sources"}, nil
	}
	return names, nil
}

// scopes are the places of a leftover table: the anchor and the main ruleset.
func (v *victim) scopes() []string {
	return []string{"pfctl -a " + quote(v.record.Settings["anchor"]), "pfctl"}
}

func leaveTables(ctx context.Context, v *victim) error {
	if err := flushAnchor(ctx, v); err != nil {
		return err
	}
	names, err := v.tableNames(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		for _, scope := range v.scopes() {
			if _, err := v.run(ctx, scope+" -t "+quote(name)+" -T add 192.0.2.1"); err != nil {
				return err
			}
		}
	}
	return nil
}

// left returns the pfctl commands for the leftover tables that still exist.
func (v *victim) left(ctx context.Context) ([]string, error) {
	names, err := v.tableNames(ctx)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, name := range names {
		for _, scope := range v.scopes() {
			shown, err := v.run(ctx, scope+" -v -s Tables 2>/dev/null | grep '^.p' || true")
			if err != nil {
				return nil, err
			}
			for line := range strings.Lines(shown) {
				if fields := strings.Fields(line); len(fields) > 1 && fields[1] == name {
					found = append(found, scope+" -t "+quote(name))
				}
			}
		}
	}
	return found, nil
}

func tablesLeft(ctx context.Context, v *victim) (bool, error) {
	left, err := v.left(ctx)
	return len(left) > 0, err
}

func killTables(ctx context.Context, v *victim) error {
	left, err := v.left(ctx)
	if err != nil {
		return err
	}
	for _, command := range left {
		if _, err := v.run(ctx, command+" -T kill"); err != nil {
			return err
		}
	}
	return reloadAnchor(ctx, v)
}

func rememberEnabled(ctx context.Context, v *victim) error {
	disabled, err := pfDisabled(ctx, v)
	v.record.Settings = map[string]string{"enabled": strconv.FormatBool(!disabled)}
	return err
}

func disablePF(ctx context.Context, v *victim) error {
	disabled, err := pfDisabled(ctx, v)
	if err != nil || disabled {
		return err
	}
	_, err = v.run(ctx, "pfctl -d")
	return err
}

func pfDisabled(ctx context.Context, v *victim) (bool, error) {
	status, err := v.run(ctx, "pfctl -s info 2>/dev/null | head -n 1")
	return strings.HasPrefix(status, "Status: Disabled"), err
}

func enablePF(ctx context.Context, v *victim) error {
	disabled, err := pfDisabled(ctx, v)
	if err != nil || !disabled || v.record.Settings["enabled"] != "true" {
		return err
	}
	_, err = v.run(ctx, "pfctl -e")
	return err
}

const fail2banJob = "/Library/LaunchDaemons/org.macports.fail2ban.plist"

// letFail2banReload starts fail2ban as MacPorts installs it. It loads the provider's main ruleset.
func letFail2banReload(ctx context.Context, v *victim) error {
	const job = `<?xml version="1.0" encoding="UTF-8"?>
<plist version="1.0"><dict><key>Label</key><string>org.macports.fail2ban</string><key>ProgramArguments</key>
<array><string>/opt/local/bin/fail2ban-server</string><string>-xf</string><string>start</string></array><key>KeepAlive</key><true/></dict></plist>
`
	machine, err := v.machine()
	if err != nil {
		return err
	}
	if err := machine.WriteFile("/opt/local/bin/fail2ban-server", []byte("version=1.1.0\n"), 0, 0, 0o755); err != nil {
		return err
	}
	if err := machine.WriteFile(fail2banJob, []byte(job), 0, 0, 0o644); err != nil {
		return err
	}
	_, err = v.run(ctx, "launchctl bootstrap system "+fail2banJob+" 2>/dev/null || true; printf '%s' "+quote(mac.FactoryPFConf)+
		" | pfctl -q -f -; pfctl -e 2>/dev/null || true")
	return err
}

func stopFail2ban(ctx context.Context, v *victim) error {
	if _, err := v.run(ctx, "launchctl bootout system/org.macports.fail2ban 2>/dev/null || true; rm -f "+fail2banJob); err != nil {
		return err
	}
	return restorePoint(ctx, v)
}

// ownReference is the file with the token of a fleet's reference.
const ownReference = "/var/run/dev.macfleet.pf"

func (v *victim) referenceHeld(ctx context.Context) (bool, error) {
	held, err := v.run(ctx, "token=$(grep '^Token' "+ownReference+" 2>/dev/null | cut -d ' ' -f 3); pfctl -s References 2>/dev/null | grep -c \" ${token:-none} \" || true")
	return held == "1", err
}

func rememberReference(ctx context.Context, v *victim) error {
	held, err := v.referenceHeld(ctx)
	v.record.Settings = map[string]string{"held": strconv.FormatBool(held)}
	return err
}

func dropReference(ctx context.Context, v *victim) error {
	_, err := v.run(ctx, "token=$(grep '^Token' "+ownReference+" 2>/dev/null | cut -d ' ' -f 3); [ -z \"$token\" ] || pfctl -X \"$token\"")
	return err
}

func referenceGone(ctx context.Context, v *victim) (bool, error) {
	held, err := v.referenceHeld(ctx)
	return !held, err
}

func takeReference(ctx context.Context, v *victim) error {
	if held, err := v.referenceHeld(ctx); held || err != nil || v.record.Settings["held"] != "true" {
		return err
	}
	_, err := v.run(ctx, "pfctl -E >"+ownReference+" 2>&1")
	return err
}

func armCut(reboot bool) func(context.Context, *victim) error {
	return func(_ context.Context, v *victim) error {
		machine, err := v.machine()
		if err != nil {
			return err
		}
		return machine.ArmCut(reboot)
	}
}

func cutArmed(reboot bool) func(context.Context, *victim) (bool, error) {
	return func(_ context.Context, v *victim) (bool, error) {
		machine, err := v.machine()
		if err != nil {
			return false, err
		}
		return machine.CutArmed(reboot)
	}
}

func disarmCut(reboot bool) func(context.Context, *victim) error {
	return func(_ context.Context, v *victim) error {
		machine, err := v.machine()
		if err != nil {
			return err
		}
		return machine.DisarmCut(reboot)
	}
}
