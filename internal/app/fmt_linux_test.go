package app

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// unprivileged does something as a user to whom the modes of files apply. For
// root that is a thread of another user, which ends with its goroutine.
func unprivileged(t *testing.T, do func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		do()
		return
	}
	const nobody = 65534
	became := make(chan bool)
	go func() {
		runtime.LockOSThread()
		_ = unix.Setfsuid(nobody) // it never fails: who one is now says whether it worked
		now, _ := unix.SetfsuidRetUid(-1)
		if now == nobody {
			do()
		}
		became <- now == nobody
	}()
	if !<-became {
		t.Fatal("root cannot become another user here: run the tests as a user who is not root")
	}
}
