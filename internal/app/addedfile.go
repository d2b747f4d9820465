package app

import (
	"bytes"
	"io/fs"
	"slices"
	"strings"
	"time"
)

// added is a file that a configuration gets: it is checked with it before it is written. The zero added is none.
type added struct {
	name    string // without a folder
	content []byte
}

// withFile is a folder with one more file.
type withFile struct {
	fs.FS
	added
}

// Open opens a file of the folder, or the added one.
func (f withFile) Open(name string) (fs.File, error) {
	if name == f.name {
		return &openFile{bytes.NewReader(f.content), f.added}, nil
	}
	return f.FS.Open(name)
}

// ReadDir lists the folder and the added file, sorted by name.
func (f withFile) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(f.FS, name)
	if name == "." {
		entries = append(entries, fs.FileInfoToDirEntry(fileInfo{f.added}))
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}

// openFile is the added file, opened.
type openFile struct {
	*bytes.Reader
	added
}

// Stat describes the file.
func (f *openFile) Stat() (fs.FileInfo, error) { return fileInfo{f.added}, nil }

// Close does nothing: the file is in memory.
func (f *openFile) Close() error { return nil }

// fileInfo describes the added file.
type fileInfo struct{ added }

func (i fileInfo) Name() string       { return i.name }
func (i fileInfo) Size() int64        { return int64(len(i.content)) }
func (i fileInfo) Mode() fs.FileMode  { return 0o644 }
func (i fileInfo) ModTime() time.Time { return time.Time{} }
func (i fileInfo) IsDir() bool        { return false }
func (i fileInfo) Sys() any           { return nil }
