package tartkubelet_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/plan"
	"github.com/macfleet/macfleet/steps/stepstest"
)

// TestKubeletUnread: an answer that is truncated or unknown is not a difference.
func TestKubeletUnread(t *testing.T) {
	t.Parallel()
	whole := stepstest.SettledKubelet(name).Answer().Stdout
	for what, text := range map[string]string{
		"empty":               "",
		"cut off":             whole[:len(whole)/2],
		"an unknown part":     "x\n== weather 0\n" + whole,
		"no number":           strings.Replace(whole, "== job 0", "== job zero", 1),
		"launchctl says 5":    strings.Replace(whole, "== job 0", "== job 5", 1),
		"ps failed":           strings.Replace(whole, "== processes 0", "== processes 1", 1),
		"half a page":         strings.Replace(whole, "\tproperties", "}\n\tproperties", 1) + "x",
		"a broken receipt":    strings.Replace(whole, "current ", "current x", 1),
		"no hardware":         strings.Replace(whole, "17179869184", "", 1),
		"chatter at hardware": strings.Replace(whole, "17179869184", "17179869184\nhello", 1),
		"a strange process":   strings.Replace(whole, "01:00:00", "an hour", 1),
		"no time":             strings.Replace(whole, "1763100000", "noon", 1),
	} {
		v := stepstest.View(stepstest.Host(joined), stepstest.With(nil, map[string]plan.Answer{kubeletProbe: stepstest.Said(text), backgroundProbe: {}}))
		f := stepstest.Step(t, kubeletID, joined).Diff(v)
		stepstest.Sound(t, kubeletID, v, f)
		if what == "half a page" {
			continue // its only end mark is the last line
		}
		if len(f.Unread) == 0 {
			t.Errorf("%s: %s", what, stepstest.Brief(f))
		}
	}
	f := stepstest.Step(t, kubeletID, joined).Diff(stepstest.View(stepstest.Host(joined), nil))
	if len(f.Unread) != 1 {
		t.Errorf("nothing was read: %+v", f)
	}
	if f := stepstest.Step(t, kubeletID, none).Diff(stepstest.View(stepstest.Host(none), nil)); len(f.Unread) > 0 {
		t.Errorf("nothing is configured and nothing was ever verified: %+v", f)
	}
}

// TestKubeletNoSecret: nothing of a finding holds what may be secret.
func TestKubeletNoSecret(t *testing.T) {
	t.Parallel()
	c := newKubeletCase()
	c.mac.Withheld, c.mac.ConfigClaims = strings.Repeat("e", 64), stepstest.Claims("other", "x")
	f := c.finding(t)
	if text := fmt.Sprintf("%+v", f); strings.Contains(text, c.mac.ConfigClaims) {
		t.Errorf("the token's claims: %s", text)
	}
}

// TestElapsed: every age that ps may show is read.
func TestElapsed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		age := rapid.IntRange(0, 30*86400).Draw(r, "age")
		text := fmt.Sprintf("%02d:%02d", age/60%60, age%60)
		if age >= 3600 {
			text = fmt.Sprintf("%02d:%s", age/3600%24, text)
		}
		if age >= 86400 {
			text = fmt.Sprintf("%d-%s", age/86400, text)
		}
		c := newKubeletCase()
		c.mac.Processes = "4242 1 " + text + " /usr/local/bin/tart-kubelet\n"
		started := c.mac.Now - int64(age)
		for off, stale := range map[int64]bool{-3: false, 0: false, 2: false, 3: true} {
			c.mac.Receipt = stepstest.SettledKubelet(name).Receipt
			c.mac.Receipt = c.mac.Receipt[:strings.Index(c.mac.Receipt, "installed ")] + fmt.Sprintf("installed %d\n", started+off)
			f := c.finding(t)
			if got := len(f.Changes) > 0; got != stale {
				r.Fatalf("%s, installed %d s after the start: %s", text, off, stepstest.Brief(f))
			}
		}
	})
}

// TestKubeletFault: a host is Ready only with its own kubelet, and a heartbeat from before its process started does not count.
func TestKubeletFault(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		edit  func(*kubeletCase)
		fault string
		heard bool
	}{
		{"healthy", func(c *kubeletCase) { c.heard(-10 * time.Second) }, "", true},
		{"crash loop", func(c *kubeletCase) { page(stepstest.KubeletWaits, "")(c); c.heard(-time.Second) }, "kubelet-crash-loop", true},
		{"not loaded", func(c *kubeletCase) { c.mac.Job, c.mac.Processes = 113, "" }, "kubelet-not-loaded", true},
		{"settling", func(c *kubeletCase) { page(endedWell, young)(c); c.heard(0) }, plan.CodeKubeletSettling.String(), true},
		{"heard before its start", func(c *kubeletCase) { c.mac.Processes = young; c.heard(-2 * time.Second) }, "", false},
		{"heard since", func(c *kubeletCase) { c.mac.Processes = young; c.heard(0) }, "", true},
		{"its restart is left", func(c *kubeletCase) { c.view.Pending = true; c.heard(0) }, "", true},
		{"older than its program", func(c *kubeletCase) { c.receipt("installed 1763000001", "installed 1763099000") }, "", true},
	} {
		c := newKubeletCase()
		tc.edit(c)
		f := c.finding(t)
		k, ok := f.Kubelet.Get()
		n, _ := c.view.Node.Get()
		if !ok || k.Fault.Code.String() != tc.fault || k.SentHeartbeat(n) != tc.heard {
			t.Errorf("%s: %+v, heard %t", tc.name, k, k.SentHeartbeat(n))
		}
		if k.Unfinished != c.view.Pending { // its process may use the token of before, which must not be revoked
			t.Errorf("%s: unfinished %t", tc.name, k.Unfinished)
		}
	}
}

// FuzzKubeletAnswers: no answer makes the steps fail, and none that is odd is a difference.
func FuzzKubeletAnswers(f *testing.F) {
	f.Add(stepstest.SettledKubelet(name).Answer().Stdout, stepstest.SettledTart().Answer().Stdout)
	f.Add(stepstest.FactoryKubelet().Answer().Stdout, stepstest.Tart{}.Answer().Stdout)
	f.Add("current x\n== file 0 0:0:644 /usr/local/lib/macfleet/tart.receipt\n\n== end\n", "\n== processes x\n")
	f.Add("1 2\n== hardware 0\n== end", "x\n== space 0\n\n== end\n")
	f.Fuzz(func(t *testing.T, kubelet, bundle string) {
		facts := stepstest.With(nil, map[string]plan.Answer{kubeletProbe: stepstest.Said(kubelet), backgroundProbe: {}, "tart.state": stepstest.Said(bundle)})
		for _, spec := range []fleet.Spec{joined, fleet.Spec{Tart: &fleet.Tart{Artifact: stepstest.TartArtifact()}}, none} {
			for _, id := range []plan.StepID{"tart", kubeletID} {
				v := stepstest.View(stepstest.Host(spec), facts)
				v.Verified = true
				found := stepstest.Step(t, id, spec).Diff(v)
				if len(found.Unread) > 0 && (found.Changes != nil || found.Facts != "") {
					t.Errorf("%s: unread and yet %+v", id, found)
				}
			}
		}
	})
}
