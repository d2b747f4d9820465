package artifact

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
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
	text, err := json.Marshal(receipt{now, sum})
	if err != nil || s.makeCache() != nil {
		return
	}
	temp, err := os.CreateTemp(s.Cache, ".receipt-*")
	if err != nil {
		return
	}
	_, werr := temp.Write(text)
	if cerr := temp.Close(); werr != nil || cerr != nil || os.Rename(temp.Name(), s.receipt(now.Path)) != nil {
		_ = os.Remove(temp.Name()) // it is of no use
	}
}

func (s *Store) receipt(path string) string {
	sum := sha256.Sum256([]byte(path))
	return filepath.Join(s.Cache, "receipt-"+hex.EncodeToString(sum[:8])+".json")
}

func (s *Store) makeCache() error { return os.MkdirAll(s.Cache, 0o755) }
