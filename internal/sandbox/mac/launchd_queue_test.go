package mac

import (
	"strings"
	"testing"
	"time"
)

// TestQueueDirectories: a job runs while its folder has content, is throttled, and costs nothing while
// it is empty. A job that polls does so by the machine's clock.
func TestQueueDirectories(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		program string
		after   map[time.Duration]int // runs, by how long the folder has had content
	}{
		"it ends at once":    {"/tmp/look", map[time.Duration]int{time.Second: 1, 11 * time.Second: 2, 12 * time.Second: 2}},
		"it waits in a loop": {"while /tmp/look; do sleep 2; done", map[time.Duration]int{time.Second: 1, 4 * time.Second: 2, 7 * time.Second: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			looks := func() int {
				return strings.Count(must(t, m, "root", "cat /tmp/looks 2>/dev/null || true"), "look")
			}
			later := func(d time.Duration) {
				t.Helper()
				ok(t, m.Advance(d))
			}
			must(t, m, "root", `mkdir /tmp/queue; printf '#!/bin/sh\necho look >>/tmp/looks\n[ -e /tmp/queue/a ]\n' >/tmp/look; chmod 755 /tmp/look
printf '<plist version="1.0"><dict><key>Label</key><string>q</string><key>ProgramArguments</key><array><string>/bin/sh</string><string>-c</string><string>`+c.program+`</string></array><key>QueueDirectories</key><array><string>/tmp/queue</string></array></dict></plist>' >/Library/LaunchDaemons/q.plist
launchctl bootstrap system /Library/LaunchDaemons/q.plist`)
			later(time.Hour)
			equal(t, looks(), 0, "runs while the folder is empty")
			must(t, m, "root", "touch /tmp/queue/a")
			gone := time.Duration(0)
			for _, at := range []time.Duration{time.Second, 4 * time.Second, 7 * time.Second, 11 * time.Second, 12 * time.Second} {
				later(at - gone)
				gone = at
				if want, asked := c.after[at]; asked && looks() != want {
					t.Errorf("after %s: %d runs, want %d", at, looks(), want)
				}
			}
			must(t, m, "root", "rm /tmp/queue/a; rm /tmp/looks")
			later(20 * time.Second)
			looks()
			must(t, m, "root", "rm -f /tmp/looks")
			later(time.Hour)
			equal(t, looks(), 0, "runs after the folder was emptied")
		})
	}
}

// TestQueueDirectoriesSleeper: if the script of a loop sleeps itself, it continues after that, and the
// loop's own sleep is added.
func TestQueueDirectoriesSleeper(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	must(t, m, "root", `mkdir /tmp/queue; printf '#!/bin/sh\necho start >>/tmp/looks\nsleep 30\necho done >>/tmp/looks\n[ -e /tmp/queue/a ]\n' >/tmp/look; chmod 755 /tmp/look
printf '<plist version="1.0"><dict><key>Label</key><string>q</string><key>ProgramArguments</key><array><string>/bin/sh</string><string>-c</string><string>while /tmp/look; do sleep 2; done</string></array><key>QueueDirectories</key><array><string>/tmp/queue</string></array></dict></plist>' >/Library/LaunchDaemons/q.plist
launchctl bootstrap system /Library/LaunchDaemons/q.plist; touch /tmp/queue/a`)
	for _, step := range []struct {
		later time.Duration
		want  string
	}{{time.Second, "start done"}, {20 * time.Second, "start done"}, {20 * time.Second, "start done start done"}} {
		ok(t, m.Advance(step.later))
		equal(t, strings.Join(strings.Fields(must(t, m, "root", "cat /tmp/looks")), " "), step.want, step.later, "later")
	}
}
