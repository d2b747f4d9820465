package mac

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
)

// choice finds the word that starts with a text, as pfctl abbreviates them.
func choice(text string, words ...string) string {
	for _, word := range words {
		if text != "" && strings.HasPrefix(word, text) {
			return word
		}
	}
	return ""
}

// shown is -s.
func (c *pfctlCall) shown() int {
	what := choice(c.options['s'], "nat", "queue", "rules", "Anchors", "Sources", "states", "info", "Interfaces", "labels", "timeouts",
		"memory", "Tables", "osfp", "Running", "all", "dummynet", "References")
	switch what {
	case "rules":
		return c.showRules(scrubRule, filterRule)
	case "nat":
		return c.showRules(natRule, rdrRule, binatRule)
	case "dummynet":
		return c.showRules(dummynetRule)
	case "Anchors":
		return c.showAnchors()
	case "Tables":
		return c.showTables()
	case "info":
		return c.showInfo()
	case "References":
		return c.showReferences()
	case "Running":
		if c.live.Enabled {
			c.show("Enabled")
			return 0
		}
		c.show("Disabled")
		return exitFailed
	case "states":
		return 0 // connections are not modelled
	case "":
		return c.fail(exitFailed, "Unknown show modifier '%s'", c.options['s'])
	}
	return c.fail(exitUnmodelled, "option not modelled: -s %s", what)
}

// there returns the ruleset of -a. The kernel has no anchors with an asterisk in their name.
func (c *pfctlCall) there() (*ruleset, bool) {
	if c.anchor == "" || slices.Contains(c.live.anchors(), c.anchor) {
		return c.live.ruleset(c.anchor), true
	}
	return nil, false
}

func (c *pfctlCall) showRules(kinds ...ruleKind) int {
	r, ok := c.there()
	if !ok {
		return c.fail(exitFailed, "DIOCGETRULES: Invalid argument")
	}
	c.showList(r.of(kinds...), c.anchor, "")
	return 0
}

// showList prints rules, and those of a nameless anchor within braces.
func (c *pfctlCall) showList(rules []pfRule, anchor, indent string) {
	for _, one := range rules {
		body := ""
		if strings.HasPrefix(one.Point, namelessPrefix) {
			body = " {"
		}
		c.show("%s%s%s", indent, one.Text, body)
		if c.options.has('v') && indent == "" {
			n := c.translated(anchor)
			c.show("  [ Evaluations: %-9d Packets: %-9d Bytes: %-11d States: 0     ]", n, n, 60*n)
			c.show("  [ Inserted: uid 0 pid 0 ]")
		}
		if body != "" {
			inner := pointed(anchor, one.Point)
			c.showList(c.live.ruleset(inner).of(filterRule), inner, indent+"  ")
			c.show("%s}", indent)
		}
	}
}

// showAnchors prints the anchors right below that of -a, with -v all below.
func (c *pfctlCall) showAnchors() int {
	for _, anchor := range c.live.anchors() {
		above := path.Dir(anchor)
		if above == "." {
			above = ""
		}
		within := c.anchor == "" || strings.HasPrefix(anchor, c.anchor+"/")
		if above == c.anchor || c.options.has('v') && within {
			c.show("  %s", anchor)
		}
	}
	return 0
}

func (c *pfctlCall) showTables() int {
	r := c.live.Rulesets[c.anchor]
	if r == nil {
		return 0
	}
	for _, name := range slices.Sorted(maps.Keys(r.Tables)) {
		if !c.options.has('v') {
			c.show("%s", name)
			continue
		}
		line := r.Tables[name].flags(r.references(name)) + "\t" + name
		if c.anchor != "" {
			line += "\t" + c.anchor
		}
		c.show("%s", line)
	}
	return 0
}

// lasted formats a time span as pfctl does.
func (c *pfctlCall) lasted(since time.Time) string {
	seconds := max(0, int(c.p.session.shown().Sub(since).Seconds()))
	return fmt.Sprintf("%d days %02d:%02d:%02d", seconds/86400, seconds/3600%24, seconds/60%60, seconds%60)
}

func (c *pfctlCall) showInfo() int {
	state := "Disabled"
	if c.live.Enabled {
		state = "Enabled"
	}
	c.show("%-44s%15s\n", "Status: "+state+" for "+c.lasted(c.live.Since), "Debug: Urgent")
	c.show("State Table                          Total             Rate")
	for _, name := range []string{"current entries", "searches", "inserts", "removals"} {
		rate := "            0.0/s"
		if name == "current entries" {
			rate = "               "
		}
		c.show("  %-25s %14d%s", name, 0, rate)
	}
	c.show("Counters")
	for _, name := range []string{"match", "bad-offset", "fragment", "short", "normalize", "memory"} {
		c.show("  %-25s %14d            0.0/s", name, 0)
	}
	return 0
}

func (c *pfctlCall) showReferences() int {
	c.show("TOKENS:")
	c.show("%-8s %-28s %-24s %s", "PID", "Process Name", "TOKEN", "TIMESTAMP")
	for _, r := range c.live.References {
		c.show("%-8d %-28s %-24d %s", r.PID, r.Process, r.Token, c.lasted(r.Since))
	}
	return 0
}

// showFiles prints the loaded rules, as -v does with -f.
func (c *pfctlCall) showFiles(files []pfFile) {
	for i, file := range files {
		if i > 0 {
			c.show("\nLoading anchor %s", files[0].loads[min(i, len(files[0].loads))-1].anchor)
		}
		for _, def := range file.tables {
			line := "table <" + def.name + ">"
			if def.Const {
				line += " const"
			}
			if def.Persist {
				line += " persist"
			}
			if len(def.Addresses) > 0 {
				line += " {"
				for _, address := range def.Addresses {
					line += " " + address.String()
				}
				line += " }"
			}
			c.show("%s", line)
		}
		for _, one := range file.rules {
			c.show("%s", one.Text)
		}
	}
}
