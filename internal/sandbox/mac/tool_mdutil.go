package mac

import (
	"strings"
)

// spotlightPlist says whether Spotlight indexes the Mac's volumes.
const spotlightPlist = "/.Spotlight-V100/VolumeConfiguration.plist"

// indexedVolumes are those of a Mac mini that mdutil names.
var indexedVolumes = []string{"/", "/System/Volumes/Data", "/System/Volumes/Preboot"}

// mdutil shows or sets the indexing of all volumes; only -a with -s or -i is modelled.
func mdutil(p *proc) int {
	words := strings.Join(p.args(), " ")
	var set, on bool
	switch words {
	case "-a -s", "-as", "-s -a":
	case "-a -i on", "-i on -a":
		set, on = true, true
	case "-a -i off", "-i off -a":
		set = true
	default:
		return p.unmodelled(words)
	}
	if set && p.user.uid != 0 {
		return p.fail(exitFailed, "must be root to change indexing") // the real text is not known
	}
	err := p.visit(func(v *visit) error {
		values, err := v.readPlist(spotlightPlist)
		if err != nil {
			return err
		}
		if !set {
			off, _ := values["IndexingDisabled"].(bool)
			on = !off
			return nil
		}
		if err := v.mkdirAll(v.rootProc(), "/.Spotlight-V100", 0o700); err != nil {
			return err
		}
		values["IndexingDisabled"] = !on
		return v.writePlist(spotlightPlist, values, owner{Mode: 0o600})
	})
	if err != nil {
		return p.fail(exitFailed, "%s", why(err))
	}
	state := map[bool]string{true: "Indexing enabled. ", false: "Indexing disabled."}[on]
	for _, volume := range indexedVolumes {
		p.printf("%s:\n\t%s\n", volume, state)
	}
	return 0
}

func spotlightOn() ToolFault {
	return ToolFault{Name: "spotlight-on", Summary: "someone turned Spotlight on",
		Cause: "mdutil -a -i on", Cure: "mdutil -a -i off", Shows: "mdutil -a -s", Text: "Indexing enabled"}
}
