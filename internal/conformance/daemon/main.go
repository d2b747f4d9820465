// Command daemon is a job that does nothing: two builds of it, which differ in one string, show whether launchd
// starts other bytes under a job that it has loaded (make conformance-settings).
package main

import (
	"fmt"
	"time"
)

// build is set by the linker.
var build = "0"

func main() {
	fmt.Println("build", build)
	for {
		time.Sleep(time.Hour)
	}
}
