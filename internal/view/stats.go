package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/internal/engine"
)

// Stats is what a command cost.
type Stats struct {
	Hosts         hosts.Stats
	Spent         []hosts.Spent // by host
	Requests      []Requests
	Configuration time.Duration // until it was read and checked
	Credentials   time.Duration // until secrets were resolved and clients made
	Phases        Phases
	Total         time.Duration
}

// Requests counts the requests to a provider.
type Requests struct {
	Provider string
	Count    int64
}

// Phases adds up from a run's events how long its phases took, by the clock on the wall.
type Phases struct {
	Lists   time.Duration // the providers' lists
	Hosts   time.Duration // observing hosts, all at once
	Compute time.Duration // planning
	Actions time.Duration // performing

	asked, acted time.Time // until when Hosts and Actions are counted
}

// Event takes in an event.
func (p *Phases) Event(e engine.Event) {
	switch e.Type {
	case engine.Listed:
		p.Lists += duration(e.Seconds)
		p.acted = time.Time{} // what follows is another observation
	case engine.Observing:
		p.asked = e.Time
	case engine.Observed:
		p.Hosts += e.Time.Sub(p.asked)
		p.asked = e.Time
	case engine.Computed:
		p.Compute += duration(e.Seconds)
	case engine.Started:
		if p.acted.IsZero() {
			p.acted = e.Time
		}
	case engine.Done, engine.Failed:
		p.Actions += e.Time.Sub(p.acted)
		p.acted = e.Time
	}
}

// Stats shows what a command cost, and the hosts that took longest.
func (t *Text) Stats(s Stats) {
	asked := joined(s.Requests, func(r Requests) string { return fmt.Sprintf("%s %d", r.Provider, r.Count) })
	t.sayf("Stats: %s, %s, %s, %.1f kB sent, %.1f kB received; requests: %s; %s.",
		count(int(s.Hosts.Connections), "SSH connection"), count(int(s.Hosts.Execs), "exec"), count(int(s.Hosts.Turns), "round trip"),
		float64(s.Hosts.Sent)/1000, float64(s.Hosts.Received)/1000, asked, inSeconds(s.Total))
	t.line(2, "", fmt.Sprintf("By the clock: configuration %s, credentials %s, lists %s, hosts %s, compute %s%s.", inSeconds(s.Configuration), inSeconds(s.Credentials),
		inSeconds(s.Phases.Lists), inSeconds(s.Phases.Hosts), inSeconds(s.Phases.Compute), given(s.Phases.Actions > 0, ", actions %s", inSeconds(s.Phases.Actions))))
	if len(s.Spent) == 0 {
		return
	}
	var sum hosts.Spent
	for _, h := range s.Spent {
		sum.Dial += h.Dial
		sum.Handshake += h.Handshake
		sum.Exec += h.Exec
	}
	t.line(2, "", fmt.Sprintf("Summed over %s: dial %s, handshake %s, exec %s.", count(len(s.Spent), "host"),
		inSeconds(sum.Dial), inSeconds(sum.Handshake), inSeconds(sum.Exec)))
	slowest := slices.SortedFunc(slices.Values(s.Spent), func(a, b hosts.Spent) int {
		return cmp.Or(cmp.Compare(b.Total(), a.Total()), strings.Compare(a.Host, b.Host))
	})
	rows := [][]string{{"SLOWEST HOSTS", "TOOK", "MOST OF IT"}}
	for _, h := range slowest[:min(len(slowest), 5)] {
		most, phase := max(h.Dial, h.Handshake, h.Exec), "exec " // of equal ones the first
		switch most {
		case h.Dial:
			phase = "dial "
		case h.Handshake:
			phase = "handshake "
		}
		rows = append(rows, []string{h.Host, inSeconds(h.Total()), phase + inSeconds(most)})
	}
	t.Table(rows)
}

func duration(seconds float64) time.Duration {
	return time.Duration(seconds * float64(time.Second))
}

func inSeconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }
