package hosts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/macfleet/macfleet/plan"
)

// Upload is a file on its way to a host.
type Upload struct {
	Source   io.Reader
	Size     int64
	SHA256   string // in hex, of Source
	Path     string // absolute, on the host
	Mode     fs.FileMode
	Owner    string           // user:group
	Progress func(sent int64) // how many bytes went out so far; may be nil
}

// leastRate is how slow a line may be, in bytes a second, before an upload is
// given up.
const leastRate = 32 << 10

// wrongBytes is the exit code of upload.sh for a file that arrived damaged.
const wrongBytes = 3

// Upload brings a file to a host as root. It appears there in one step, whole and
// with its mode and owner, or not at all: its digest is taken on the host before
// it gets its name. The error is an *Error when the connection broke.
func (c *Conn) Upload(ctx context.Context, u Upload) error {
	if err := u.check(); err != nil {
		return fmt.Errorf("upload to %s: %w", c.target.name(), err)
	}
	if err := acquire(ctx, c.client.uploads); err != nil {
		return fmt.Errorf("upload to %s: %w", c.target.name(), err)
	}
	defer func() { <-c.client.uploads }()
	command := own("upload", plan.Root)
	mark := newMark()
	header := fmt.Sprintf("%s\n%s\n%04o\n%s\n%d\n%s", mark, u.SHA256, u.Mode.Perm(), u.Owner, len(u.Path), u.Path)
	source := &counted{source: io.LimitReader(u.Source, u.Size), tell: u.Progress}
	r, err := c.converse(ctx, conversation{mark: mark, line: scriptLine(c.client.opts.Prologue + command.Script),
		stdin: io.MultiReader(strings.NewReader(header), source), questions: []question{{id: "upload", Command: command}},
		limit: c.client.opts.Deadlines.Exchange + time.Duration(u.Size/leastRate)*time.Second})
	if source.err != nil {
		return fmt.Errorf("upload %s to %s: %w", u.Path, c.target.name(), source.err)
	}
	if err != nil {
		return c.lost(err)
	}
	seen := r.facts.Get("upload")
	a, ok := seen.Get()
	switch {
	case !ok:
		return fmt.Errorf("upload %s to %s: %s", u.Path, c.target.name(), seen.Why())
	case a.Exit == wrongBytes && source.n < u.Size:
		return fmt.Errorf("upload %s to %s: the source ends after %d of %d bytes", u.Path, c.target.name(), source.n, u.Size)
	case a.Exit != 0:
		return &ScriptError{Host: c.target.name(), Script: "upload of " + u.Path, Answer: a}
	}
	return nil
}

// check refuses what upload.sh could not read, or would read as something else.
func (u Upload) check() error {
	switch {
	case !path.IsAbs(u.Path) || path.Clean(u.Path) != u.Path || u.Path == "/" || strings.ContainsRune(u.Path, 0):
		return fmt.Errorf("%q is not the absolute path of a file", u.Path)
	case len(u.SHA256) != 64 || strings.Trim(u.SHA256, "0123456789abcdef") != "":
		return errors.New("the SHA-256 must be 64 digits of small hex")
	case u.Owner == "" || strings.Trim(u.Owner, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:-") != "" || u.Owner[0] == '-':
		return fmt.Errorf("%q is no owner", u.Owner)
	case u.Size < 0:
		return errors.New("the size is negative")
	}
	return nil
}

// counted counts what is read, and remembers why it could not be.
type counted struct {
	source io.Reader
	n      int64
	err    error
	tell   func(int64)
}

// Read reads from the source.
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.source.Read(p)
	c.n += int64(n)
	if err != nil && err != io.EOF {
		c.err = err
	}
	if c.tell != nil && n > 0 {
		c.tell(c.n)
	}
	return n, err
}
