package plan

import "cmp"

// fieldNames are the names of fields that people read, by the names that the digests in the
// markers were made with. Those must not change: every host would drift after an upgrade.
var fieldNames = map[string]string{
	"root without a password":         "passwordless sudo",
	"profile against automatic login": "automatic login forbidden by profile",
	"macOS's own anchors":             "stock anchors",
	"macOS's own lines of pf.conf":    "stock lines of pf.conf",
	"reference of pf":                 "pf reference",
	"tables left over":                "leftover tables",
	"anchors given up":                "replaced anchors",
}

// FieldName returns the name of a field that people read. Ignore blocks may use either name.
func FieldName(name string) string { return cmp.Or(fieldNames[name], name) }
