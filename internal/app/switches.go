package app

import (
	"io"
	"log"
	"strconv"
	"strings"
)

// quietLibraries keeps what libraries print through Go's own logger from the terminal and from CI's logs. With
// GODEBUG=http2debug, net/http prints the credentials of every request there, and the passwords in answers.
func quietLibraries() { log.SetOutput(io.Discard) }

// A debugSwitch is a variable of the environment that would make a library print secrets, or weaken a connection.
type debugSwitch struct {
	name string
	on   func(value string) bool
	why  string
}

var debugSwitches = []debugSwitch{
	{"SCW_DEBUG", set, "it would print the sudo passwords of servers"},
	{"SCW_INSECURE", set, "macfleet always verifies Scaleway's certificate"},
	{"GODEBUG", func(value string) bool { return strings.Contains(value, "http2debug=") }, "http2debug would print credentials"},
}

// set reports whether a switch is on, as the SDK reads it.
func set(value string) bool {
	on, _ := strconv.ParseBool(value)
	return on
}

// warnOfSwitches says which switches are set and have no effect.
func (env *Env) warnOfSwitches(lookup func(name string) string) {
	for _, s := range debugSwitches {
		if s.on(lookup(s.name)) {
			env.warn(s.name + " has no effect: " + s.why + ". The log of this command lists its requests, without credentials.")
		}
	}
}
