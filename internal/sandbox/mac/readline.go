package mac

import (
	"bytes"
	"context"
	"io"
	"os"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// peekSize is how many bytes of a line are read ahead at once: most lines are shorter.
const peekSize = 512

// peeker reads what a file has next without taking it.
type peeker interface {
	// peek returns the next bytes, at most len(buf), and waits for the first. It returns io.EOF at the end.
	peek(ctx context.Context, buf []byte) (int, error)
	// take takes bytes that were read ahead.
	take(n int) error
}

// readLine takes over a plain "read -r NAME..." from a pipe or a file. The interpreter reads byte by
// byte, so that the next command finds the rest, and that was a third of the time of all tests with
// Macs. It returns the assignments that come of it, or args for the interpreter.
func (sh *shell) readLine(ctx context.Context, hc interp.HandlerContext, args []string) []string {
	if len(args) < 3 || args[1] != "-r" || !allNames(args[2:]) {
		return args
	}
	file, ok := hc.Stdin.(*os.File)
	if !ok || file == nil {
		return args
	}
	from := peekerOf(file)
	if from == nil {
		return args
	}
	line, err := lineOf(ctx, from)
	values := expand.ReadFields(&expand.Config{Env: hc.Env}, string(line), len(args)-2, true)
	var text strings.Builder
	for i, name := range args[2:] {
		value := ""
		if i < len(values) {
			value = values[i]
		}
		// An escaped quote outside of quotes keeps its backslash in assignments of the interpreter.
		text.WriteString(name + "='" + strings.ReplaceAll(value, "'", `'"'"'`) + "'\n")
	}
	if err != nil {
		text.WriteString("false")
	}
	return []string{"eval", text.String()}
}

func allNames(words []string) bool {
	return !slices.ContainsFunc(words, func(w string) bool { return !syntax.ValidName(w) })
}

// lineOf takes a line, and not a byte more. At the end of the file it returns what there is, and an error.
func lineOf(ctx context.Context, from peeker) (line []byte, err error) {
	var buf [peekSize]byte
	for {
		n, err := from.peek(ctx, buf[:])
		if err != nil {
			return line, err
		}
		end := bytes.IndexByte(buf[:n], '\n')
		if end >= 0 {
			return append(line, buf[:end]...), from.take(end + 1)
		}
		line = append(line, buf[:n]...)
		if err := from.take(n); err != nil {
			return line, err
		}
	}
}

// plainPeeker reads ahead in a file on the disk.
type plainPeeker struct{ *os.File }

func (f plainPeeker) peek(_ context.Context, buf []byte) (int, error) {
	at, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0, err
	}
	n, err := f.ReadAt(buf, at)
	if n > 0 {
		err = nil
	}
	return n, err
}

func (f plainPeeker) take(n int) error {
	_, err := f.Seek(int64(n), io.SeekCurrent)
	return err
}
