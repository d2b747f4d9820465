package artifact

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/macfleet/macfleet/internal/wholefile"
)

// recipe is how programs are built that have no release for these hosts.
type recipe struct {
	packages []string // of a Go module
	stamps   []string // variables that get the version; %s is the version
}

// recipes are those that macfleet knows, by the name of their artifact.
var recipes = map[string]recipe{
	// Without the stamps the daemon reports itself as a developer's build, and its version cannot be compared.
	"tailscale": {[]string{"tailscale.com/cmd/tailscale", "tailscale.com/cmd/tailscaled"},
		[]string{"tailscale.com/version.longStamp=%s-macfleet", "tailscale.com/version.shortStamp=%s"}},
}

// Recipes are the names of what Build can build, sorted.
func Recipes() []string { return slices.Sorted(maps.Keys(recipes)) }

// Built is an archive that Build made.
type Built struct {
	Path   string
	SHA256 string
	Size   int64
}

// versionOf is a version of a Go module without its v.
var versionOf = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+$`)

// Build cross-compiles programs for the hosts with the go command of this machine, and packs them into an archive in folder: the same
// sources and the same go give the same bytes. Say receives what it does. It takes some minutes.
func Build(ctx context.Context, name, version, folder string, say func(string)) (Built, error) {
	r, known := recipes[name]
	switch {
	case !known:
		return Built{}, fmt.Errorf("macfleet cannot build %s; it builds %s", name, strings.Join(Recipes(), ", "))
	case !versionOf.MatchString(version):
		return Built{}, fmt.Errorf("%q is not a version such as 1.102.5; give one: macfleet artifacts build %s@VERSION", version, name)
	}
	if _, err := exec.LookPath("go"); err != nil {
		return Built{}, errors.New("there is no go command on the PATH; install Go, then run the command again")
	}
	work, err := os.MkdirTemp("", "macfleet-build-")
	if err != nil {
		return Built{}, err
	}
	defer os.RemoveAll(work) // what stays is temporary
	goes := func(doing string, args ...string) error {
		say(doing)
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Dir, cmd.WaitDelay = work, time.Second
		cmd.Env = append(os.Environ(), "GOOS=darwin", "GOARCH=arm64", "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-mod=mod")
		out, err := cmd.CombinedOutput()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return fmt.Errorf("%s: go %s: %w\n%s", doing, args[0], err, last(string(out), 20))
		}
		return nil
	}
	var wanted []string
	for _, p := range r.packages {
		wanted = append(wanted, p+"@v"+version)
	}
	var stamps []string
	for _, s := range r.stamps {
		stamps = append(stamps, "-X "+fmt.Sprintf(s, version))
	}
	if err := goes("preparing the build", "mod", "init", "macfleet.invalid/build"); err != nil {
		return Built{}, err
	}
	if err := goes("downloading the sources of "+name+" "+version, append([]string{"get"}, wanted...)...); err != nil {
		return Built{}, err
	}
	if err := goes("compiling "+name+" "+version+" for darwin/arm64", append([]string{"build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w " + strings.Join(stamps, " "),
		"-o", "out" + string(filepath.Separator)}, r.packages...)...); err != nil {
		return Built{}, err
	}
	files := make(map[string][]byte)
	for _, p := range r.packages {
		if files[path.Base(p)], err = os.ReadFile(filepath.Join(work, "out", path.Base(p))); err != nil {
			return Built{}, fmt.Errorf("the build made no %s: %w", path.Base(p), err)
		}
	}
	archive, err := pack(files)
	if err != nil {
		return Built{}, err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return Built{}, err
	}
	sum := sha256.Sum256(archive)
	out := Built{Path: filepath.Join(folder, name+"-"+version+"-darwin-arm64.tar.gz"), SHA256: hex.EncodeToString(sum[:]), Size: int64(len(archive))}
	return out, wholefile.Replace(out.Path, 0o644, wholefile.Text(archive))
}

// pack returns an archive of programs. Names are sorted, and nothing of this machine or of the time is in it.
func pack(files map[string][]byte) ([]byte, error) {
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	to := tar.NewWriter(zipped)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		head := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o755, Size: int64(len(files[name])), ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR}
		if err := to.WriteHeader(head); err != nil {
			return nil, err
		}
		if _, err := io.Copy(to, bytes.NewReader(files[name])); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(to.Close(), zipped.Close()); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// last returns the last lines of a text.
func last(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
