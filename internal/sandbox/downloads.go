package sandbox

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox/mac"
)

// downloadsFolder holds files that a person provides for the Macs to download: HOST/PATH.
const downloadsFolder = "downloads"

// sampleHosts are the domains with a sample at every address.
func sampleHosts() []string {
	return []string{"acme.dev", "acme.com", "acme.io", "example.dev", "example.com", "example.io"}
}

// Download opens what a Mac finds at an https address: a file from the folder downloads, or, for the
// domains of the examples, a sample. The error is mac.ErrNoHost or fs.ErrNotExist.
func (w *World) Download(address string) (io.ReadSeekCloser, error) {
	at, err := url.Parse(address)
	if err != nil || at.Hostname() == "" {
		return nil, fmt.Errorf("download %s: %w", address, mac.ErrNoHost)
	}
	folder := filepath.Join(w.dir, downloadsFolder)
	root, err := os.OpenRoot(folder)
	if err == nil {
		defer root.Close() // files that are open stay readable
		file, err := root.Open(filepath.Join(at.Hostname(), filepath.FromSlash(path.Clean("/"+at.Path))))
		if err == nil {
			return file, nil
		}
		if _, known := root.Stat(at.Hostname()); known == nil && errors.Is(err, fs.ErrNotExist) && !hasSamples(at.Hostname()) {
			return nil, fmt.Errorf("download %s: %w", address, fs.ErrNotExist)
		}
	}
	if !hasSamples(at.Hostname()) && !isRunnerArchive(at) && !isExporterArchive(at) {
		return nil, fmt.Errorf("download %s: %w", address, mac.ErrNoHost)
	}
	return seekable{bytes.NewReader(Sample(address))}, nil
}

type seekable struct{ *bytes.Reader }

// Close does nothing: the bytes are in memory.
func (seekable) Close() error { return nil }

func hasSamples(host string) bool {
	for _, known := range sampleHosts() {
		if host == known || strings.HasSuffix(host, "."+known) {
			return true
		}
	}
	return false
}

// versionInName finds the version in a file's name, such as tart-2.32.1.tar.gz.
var versionInName = regexp.MustCompile(`[0-9]+(?:\.[0-9]+)+`)

// Sample returns what a Mac downloads from an address of an example. It depends only on the last part
// of the address and never changes, so that an example can state its digest. It is a program's text
// or, if the name ends in .tar.gz, an archive; that of Tart holds a bundle tart.app. If the name ends
// in -signed, a team has signed it; all others are signed ad hoc. -amfi, -tampered and
// -entitlements-none in the name of Tart give its program that trait.
func Sample(address string) []byte {
	name := path.Base(address)
	if at, err := url.Parse(address); err == nil {
		name = path.Base(at.Path)
	}
	switch {
	case archiveOfRunner.MatchString(name):
		return runnerArchive(versionInName.FindString(name))
	case strings.HasSuffix(name, ".tar.gz") && strings.HasPrefix(name, "tart") && !strings.HasPrefix(name, "tart-kubelet"):
		return packed(tartBundle(name))
	case strings.HasPrefix(name, "tailscale-") && strings.HasSuffix(name, ".tar.gz"):
		return packed([]packedFile{{"tailscale", 0o755, tailscaleProgram("tailscale", name)}, {"tailscaled", 0o755, tailscaleProgram("tailscaled", name)}})
	case strings.HasPrefix(name, "node_exporter-") && strings.HasSuffix(name, ".tar.gz"):
		inner := strings.TrimSuffix(name, ".tar.gz")
		return packed([]packedFile{{inner + "/", 0o755, nil}, {inner + "/LICENSE", 0o644, []byte("Apache License 2.0\n")},
			{inner + "/node_exporter", 0o755, program("node_exporter", name)}})
	case strings.HasPrefix(name, "packer_") && strings.HasSuffix(name, ".zip"):
		return zipped([]packedFile{{"LICENSE.txt", 0o644, []byte("Business Source License 1.1\n")}, {"packer", 0o755, append(program("packer", name), "team=D38WU7D763\n"...)}})
	case strings.HasPrefix(name, "homebrew-") && strings.HasSuffix(name, ".sh"):
		return installerOf(versionInName.FindString(name))
	case strings.HasSuffix(name, ".tar.gz"):
		inner := strings.TrimSuffix(name, ".tar.gz")
		return packed([]packedFile{{inner, 0o755, program(inner, name)}})
	}
	return program(name, name)
}

// program returns the text of a program in the simulated Macs' format.
func program(kind, name string) []byte {
	var b strings.Builder
	b.WriteString(mac.SampleLine + "\n" + name + "\n")
	for _, known := range []string{"tart-kubelet", "tart", "tailscaled", "tailscale", "node_exporter", "packer"} {
		if strings.HasPrefix(kind, known) {
			b.WriteString("program=" + known + "\n")
			break
		}
	}
	if version := versionInName.FindString(name); version != "" {
		b.WriteString("version=" + version + "\n")
	}
	if strings.HasSuffix(strings.TrimSuffix(name, ".tar.gz"), "-signed") {
		b.WriteString("team=ABCDE12345\n")
	}
	return []byte(b.String())
}

// tailscaleProgram is one of Tailscale's programs, stamped as macfleet artifacts build stamps them.
func tailscaleProgram(kind, name string) []byte {
	text := append(program(kind, name), "long="+versionInName.FindString(name)+"-macfleet\n"...)
	for _, trait := range []string{"broken", "deaf"} { // it ends at once, or never reaches its control server
		if strings.Contains(name, "-"+trait) {
			text = append(text, trait+"\n"...)
		}
	}
	return text
}

// packedFile is a file of an archive; the name of a folder ends in a slash.
type packedFile struct {
	name string
	mode int64
	data []byte
}

func tartBundle(name string) []packedFile {
	const contents = "tart.app/Contents/"
	info := `<?xml version="1.0" encoding="UTF-8"?>
<plist version="1.0">
<dict>
	<key>CFBundleExecutable</key>
	<string>tart</string>
	<key>CFBundleIdentifier</key>
	<string>com.github.cirruslabs.tart</string>
	<key>CFBundleShortVersionString</key>
	<string>` + versionInName.FindString(name) + `</string>
</dict>
</plist>
`
	text := program("tart", name)
	unsealed := beforeSeals(versionInName.FindString(name))
	if unsealed {
		text = append(text, "resources=none\n"...)
	}
	for _, trait := range []string{"amfi", "tampered", "entitlements=none"} {
		if strings.Contains(name, "-"+strings.ReplaceAll(trait, "=", "-")) {
			text = append(text, trait+"\n"...)
		}
	}
	all := []packedFile{
		{"tart.app/", 0o755, nil}, {contents, 0o755, nil},
		{contents + "Info.plist", 0o644, []byte(info)},
		{contents + "MacOS/", 0o755, nil}, {contents + "MacOS/tart", 0o755, text},
		{contents + "embedded.provisionprofile", 0o644, []byte("com.apple.security.virtualization\n")},
	}
	if unsealed {
		return all
	}
	return append(all, packedFile{contents + "_CodeSignature/", 0o755, nil},
		packedFile{contents + "_CodeSignature/CodeResources", 0o644, []byte("<plist version=\"1.0\"><dict/></plist>\n")})
}

// beforeSeals reports whether a version of Tart was packed without a seal of its resources: all up to
// 2.31.
func beforeSeals(version string) bool {
	var major, minor int
	n, _ := fmt.Sscanf(version, "%d.%d", &major, &minor)
	return n == 2 && (major < 2 || major == 2 && minor < 32)
}

// packed creates an archive. It is stored, not compressed: the output of a compressor may change with
// the library, and with it the digest.
func packed(files []packedFile) []byte {
	var b bytes.Buffer
	zipped, err := gzip.NewWriterLevel(&b, gzip.NoCompression)
	if err != nil {
		panic(err) // the level is valid
	}
	archive := tar.NewWriter(zipped)
	for _, file := range files {
		kind := byte(tar.TypeReg)
		if strings.HasSuffix(file.name, "/") {
			kind = tar.TypeDir
		}
		head := &tar.Header{Typeflag: kind, Name: file.name, Mode: file.mode, Size: int64(len(file.data)), ModTime: time.Unix(1_767_225_600, 0), Format: tar.FormatUSTAR}
		if err := errors.Join(archive.WriteHeader(head), write(archive, file.data)); err != nil {
			panic(err) // writes to memory do not fail
		}
	}
	if err := errors.Join(archive.Close(), zipped.Close()); err != nil {
		panic(err) // writes to memory do not fail
	}
	return b.Bytes()
}

// zipped returns a zip archive.
func zipped(files []packedFile) []byte {
	var b bytes.Buffer
	archive := zip.NewWriter(&b)
	for _, file := range files {
		head := &zip.FileHeader{Name: file.name, Method: zip.Store, Modified: time.Unix(1_767_225_600, 0).UTC()}
		head.SetMode(fs.FileMode(file.mode))
		w, err := archive.CreateHeader(head)
		if err == nil {
			err = write(w, file.data)
		}
		if err != nil {
			panic(err) // writes to memory do not fail
		}
	}
	if err := archive.Close(); err != nil {
		panic(err) // writes to memory do not fail
	}
	return b.Bytes()
}

func write(to io.Writer, data []byte) error {
	_, err := to.Write(data)
	return err
}
