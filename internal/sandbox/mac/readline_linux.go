package mac

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// peekerOf returns how to look at a file, or nil.
func peekerOf(file *os.File) peeker {
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil
	case info.Mode().IsRegular():
		return plainPeeker{file}
	case info.Mode()&fs.ModeNamedPipe != 0:
		return pipePeeker{file}
	}
	return nil
}

// pipePeeker reads ahead in a pipe: tee(2) duplicates its content into another pipe.
type pipePeeker struct{ *os.File }

// copies holds empty pipes for copies.
var copies = make(chan [2]int, 64)

func (p pipePeeker) peek(ctx context.Context, buf []byte) (n int, err error) {
	raw, err := p.SyscallConn()
	if err != nil {
		return 0, err
	}
	var to [2]int
	select {
	case to = <-copies:
	default:
		if err := unix.Pipe2(to[:], unix.O_CLOEXEC); err != nil {
			return 0, err
		}
	}
	defer func() {
		select {
		case copies <- to:
		default:
			_, _ = unix.Close(to[0]), unix.Close(to[1])
		}
	}()
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = p.SetReadDeadline(time.Now())
		close(ended)
	})
	defer func() {
		if !stop() {
			<-ended
			_ = p.SetReadDeadline(time.Time{})
		}
	}()
	var told error
	err = raw.Read(func(fd uintptr) bool {
		var many int64
		many, told = unix.Tee(int(fd), to[1], len(buf), unix.SPLICE_F_NONBLOCK)
		n = int(many)
		return told != unix.EAGAIN
	})
	if err = errors.Join(err, told); err != nil {
		return 0, err
	}
	if n == 0 {
		return 0, io.EOF
	}
	return unix.Read(to[0], buf[:n])
}

func (p pipePeeker) take(n int) error {
	var buf [peekSize]byte
	_, err := io.ReadFull(p.File, buf[:n])
	return err
}
