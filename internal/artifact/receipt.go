package artifact

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/macfleet/macfleet/internal/wholefile"
)

// receipt caches a file's digest, with the metadata that shows whether the file changed since.
type receipt struct {
	Path     string `json:"path"`
	Size     int64  `json:"size"`
	Modified int64  `json:"modified"` // nanoseconds
	Inode    uint64 `json:"inode"`
	SHA256   string `json:"sha256"`
}

func identify(path string, info fs.FileInfo) receipt {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	r := receipt{Path: path, Size: info.Size(), Modified: info.ModTime().UnixNano()}
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		r.Inode = s.Ino
	}
	return r
}

// recall returns the cached digest of an unchanged file.
func (s *Store) recall(now receipt) (string, bool) {
	text, _ := os.ReadFile(s.receipt(now.Path)) // unreadable: no receipt
	var r receipt
	err := json.Unmarshal(text, &r)
	now.SHA256 = r.SHA256
	return r.SHA256, err == nil && r == now
}

// remember caches a digest, best effort.
func (s *Store) remember(now receipt, sum string) {
	now.SHA256 = sum
	if os.MkdirAll(s.Cache, 0o755) == nil {
		_ = wholefile.Replace(s.receipt(now.Path), 0o600, func(w io.Writer) error { return json.NewEncoder(w).Encode(now) })
	}
}

func (s *Store) receipt(path string) string {
	sum := sha256.Sum256([]byte(path))
	return filepath.Join(s.Cache, "receipt-"+hex.EncodeToString(sum[:8])+".json")
}

// NoteVersion notes which version was locked with a digest, for VersionOf.
func (s *Store) NoteVersion(sum, version string) {
	if os.MkdirAll(s.Cache, 0o755) == nil {
		_ = wholefile.Replace(s.versionNote(sum), 0o600, wholefile.Text([]byte(version))) // without it no warning is possible
	}
}

// VersionOf returns the version with which a digest was locked on this machine.
func (s *Store) VersionOf(sum string) (version string, known bool) {
	text, err := os.ReadFile(s.versionNote(sum))
	return string(text), err == nil && sum != ""
}

func (s *Store) versionNote(sum string) string { return filepath.Join(s.Cache, "version-"+sum) }
