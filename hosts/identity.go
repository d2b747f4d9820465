package hosts

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

// absent is the exit code by which this package's own scripts say that a file
// is not there.
const absent = 4

// identity are the questions that every observation asks: which machine is
// this, and whose.
func identity() []question {
	return []question{
		{id: "host.marker", Command: ourFile("host.json")},
		{id: "host.claim", Command: ourFile("claim.json")},
		{id: "host.serial", Command: own("serial", plan.Login)},
		{id: "host.os-version", Command: own("os-version", plan.Login)},
		{id: left, Command: own("left", plan.Login)},
	}
}

// ourFile asks for one of our files on a host. Its name is a constant, so it
// stands in the script and costs no argument.
func ourFile(name string) plan.Command {
	c := own("file", plan.Login)
	c.Script = "set -- " + name + "\n" + c.Script
	return c
}

// identify enters the answers to the identity questions.
func identify(seen *plan.HostSeen) {
	seen.Marker = fromFile(seen.Facts.Get("host.marker"), plan.ParseMarker)
	seen.Claim = fromFile(seen.Facts.Get("host.claim"), parseClaim)
	seen.Serial = fromText(seen.Facts.Get("host.serial"), parseSerial)
	seen.OSVersion = fromText(seen.Facts.Get("host.os-version"), parseVersion)
	enterLeft(seen)
}

// fromFile reads an answer of one of the scripts that print a file of ours.
func fromFile[T any](answer inventory.Seen[plan.Answer], parse func(string) (T, error)) inventory.Seen[T] {
	if a, ok := answer.Get(); ok && a.Exit == absent && a.Stdout == "" {
		return inventory.Absent[T]()
	}
	return fromText(answer, parse)
}

// fromText reads an answer that must be there.
func fromText[T any](answer inventory.Seen[plan.Answer], parse func(string) (T, error)) inventory.Seen[T] {
	a, ok := answer.Get()
	if !ok {
		return inventory.Unread[T](answer.Why())
	}
	if a.Exit != 0 {
		return inventory.Unread[T](fmt.Sprintf("exit %d: %s", a.Exit, lastLine(a.Stderr)))
	}
	v, err := parse(a.Stdout)
	if err != nil {
		return inventory.Unread[T](err.Error())
	}
	return inventory.Present(v)
}

func parseClaim(text string) (plan.Claim, error) {
	var c plan.Claim
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return plan.Claim{}, fmt.Errorf("claim.json is not JSON as macfleet writes it: %w", err)
	}
	if c.Configuration == "" || c.Name == "" || c.ServerID == "" {
		return plan.Claim{}, fmt.Errorf("claim.json names no configuration, host or server")
	}
	return c, nil
}

// parseSerial finds `"IOPlatformSerialNumber" = "C07…"`.
func parseSerial(text string) (string, error) {
	_, rest, found := strings.Cut(text, `"IOPlatformSerialNumber" = "`)
	serial, _, closed := strings.Cut(rest, `"`)
	if !found || !closed || serial == "" {
		return "", fmt.Errorf("ioreg names no IOPlatformSerialNumber")
	}
	return serial, nil
}

func parseVersion(text string) (string, error) {
	v := strings.TrimSpace(text)
	if v == "" || strings.Trim(v, "0123456789.") != "" {
		return "", fmt.Errorf("sw_vers says %q", v)
	}
	return v, nil
}

// lastLine returns the last line that is not empty, which is where tools say
// what went wrong.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
