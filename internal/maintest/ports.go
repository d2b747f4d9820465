package maintest

import (
	"errors"
	"net"
	"os"
	"strconv"
	"sync"
	"time"
)

// Ports that a system gives to programs that name none begin at 32768 (Linux) or 49152 (macOS).
const firstPort, lastPort = 20000, 32000

var ports struct {
	sync.Mutex
	next int
}

// Ports returns n ports of 127.0.0.1 on which nothing listens, for programs that a test starts. No connection of
// another test gets one of them before the program has it, nor while the program is restarted. It opens none itself: a
// child that is just being started would hold it for a moment longer.
func Ports(n int) (out []string, err error) {
	ports.Lock()
	defer ports.Unlock()
	if ports.next == 0 {
		ports.next = firstPort + os.Getpid()*97%(lastPort-firstPort) // tests of other packages run now
	}
	for range lastPort - firstPort {
		if len(out) == n {
			return out, nil
		}
		port := strconv.Itoa(ports.next)
		if ports.next++; ports.next == lastPort {
			ports.next = firstPort
		}
		taken, err := net.DialTimeout("tcp", net.JoinHostPort("127.0.0.1", port), time.Second)
		if err != nil {
			out = append(out, port)
			continue
		}
		_ = taken.Close() // nothing was sent
	}
	return nil, errors.New("no port is free")
}
