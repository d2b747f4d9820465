package view

import "strings"

// Colour decides whether text for people has colours, from whether it goes to a terminal and from the environment, as other
// programs do. The first that says something wins: NO_COLOR (any value), FORCE_COLOR and CLICOLOR_FORCE (0: no colour), which
// colour a pipe too; CLICOLOR=0; TERM=dumb.
func Colour(terminal bool, env func(string) string) bool {
	if env("NO_COLOR") != "" {
		return false
	}
	for _, name := range []string{"FORCE_COLOR", "CLICOLOR_FORCE"} {
		if value := env(name); value != "" {
			return value != "0" && value != "false"
		}
	}
	return terminal && env("CLICOLOR") != "0" && env("TERM") != "dumb"
}

// UTF8 reports whether the reader knows more than ASCII, by the locale of the environment. Where it is not set, as in many
// containers, what shows logs is taken to know it, and a terminal is not.
func UTF8(terminal bool, env func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if locale := strings.ToUpper(env(name)); locale != "" {
			return strings.Contains(locale, "UTF-8") || strings.Contains(locale, "UTF8")
		}
	}
	return !terminal
}
