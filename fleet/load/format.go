package load

import (
	"io/fs"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclwrite"
)

// Format returns src in the canonical layout: two spaces a level, equals signs
// in columns. Only spaces change, so the result means the same, and a second time
// changes nothing; line ends stay as they are, LF or CRLF, and a byte order mark
// is dropped. A text that does not parse is returned as it is, with the
// diagnostics that say why, which use the name. Otherwise they are nil.
func Format(name string, src []byte) ([]byte, hcl.Diagnostics) {
	l := &loader{files: map[string]*hcl.File{}, maybe: map[string]bool{}}
	// An argument that is written twice is a fault, but none of the syntax.
	if l.parseFile(name, slices.Clone(src)) == nil {
		return src, l.finish()
	}
	return hclwrite.Format(src), nil
}

// Files returns a text as the source that diagnostics about it are shown with.
func Files(name string, src []byte) map[string]*hcl.File {
	return map[string]*hcl.File{name: {Bytes: src}}
}

// FileNames returns the names of the configuration's files in a directory, in
// the order in which they are read.
func FileNames(fsys fs.FS) ([]string, error) {
	names, _, err := list(fsys)
	return names, err
}
