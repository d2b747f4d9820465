// Package schemas holds the JSON schemas of every document that macfleet writes.
package schemas

import "embed"

// Files are the *.schema.json files of this directory.
//
//go:embed *.schema.json
var Files embed.FS
