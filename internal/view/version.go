package view

import (
	"io"
	"runtime"
	"runtime/debug"

	"github.com/macfleet/macfleet/internal/wire"
)

// Version says which macfleet this is, as one JSON object.
type Version struct {
	wire.Head
	Go     string `json:"go"`
	OS     string `json:"os"`
	Arch   string `json:"arch"`
	Commit string `json:"commit,omitempty"` // of the source, where the build recorded it
}

// WriteVersion prints the version as one JSON object.
func WriteVersion(out io.Writer) error {
	v := Version{Head: wire.NewHead(), Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				v.Commit = s.Value
			}
		}
	}
	return wire.Write(out, v)
}
