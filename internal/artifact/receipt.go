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

// identity tells a file's bytes apart from those that it had before, without
// reading them.
type identity struct {
	Path     string `json:"path"`
	Size     int64  `json:"size"`
	Modified int64  `json:"modified"` // nanoseconds
	Inode    uint64 `json:"inode"`
}

func identify(path string, info fs.FileInfo) identity {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return identity{path, info.Size(), info.ModTime().UnixNano(), inode(info)}
}

// receipt is what was found out about a file.
type receipt struct {
	identity
	SHA256 string `json:"sha256"`
}

// recall returns the digest of a file that was read before and is the same since.
func (s *Store) recall(now identity) (string, bool) {
	text, err := os.ReadFile(s.receipt(now.Path))
	if err != nil {
		return "", false
	}
	var r receipt
	if json.Unmarshal(text, &r) != nil || r.identity != now {
		return "", false
	}
	return r.SHA256, true
}

// remember enters a digest. What it cannot write is found out again next time.
func (s *Store) remember(now identity, sum string) {
	if s.makeCache() == nil {
		_ = wholefile.Replace(s.receipt(now.Path), 0o600, func(w io.Writer) error { return json.NewEncoder(w).Encode(receipt{now, sum}) })
	}
}

func (s *Store) receipt(path string) string {
	sum := sha256.Sum256([]byte(path))
	return filepath.Join(s.Cache, "receipt-"+hex.EncodeToString(sum[:8])+".json")
}

// inode returns the number of a file on its disk.
func inode(info fs.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Ino
	}
	return 0
}

func (s *Store) makeCache() error { return os.MkdirAll(s.Cache, 0o755) }
