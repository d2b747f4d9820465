package runlog

import "golang.org/x/sys/unix"

// Boot names the present boot of this machine's kernel; empty: unknown.
func Boot() string {
	id, _ := unix.Sysctl("kern.bootsessionuuid") // what cannot be read names nothing
	return id
}
