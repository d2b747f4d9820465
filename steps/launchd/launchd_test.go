package launchd_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/macfleet/macfleet/steps/launchd"
)

func agent() launchd.Job {
	return launchd.Job{Label: "dev.acme.agent", User: "m1", Arguments: []string{"/usr/local/bin/agent", "--name=a b", "--labels=a=1,b=<&>\"'"},
		Environment: map[string]string{"PATH": "/usr/bin:/bin", "HOME": "/Users/m1"}, RunAtLoad: true, KeepAlive: true, Throttle: 10,
		Stdout: "/var/log/agent.log", Stderr: "/var/log/agent.log"}
}

const rendered = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
	<key>Label</key>
	<string>dev.acme.agent</string>
	<key>UserName</key>
	<string>m1</string>
	<key>ProgramArguments</key>
	<array>
		<string>/usr/local/bin/agent</string>
		<string>--name=a b</string>
		<string>--labels=a=1,b=&lt;&amp;&gt;&#34;&#39;</string>
	</array>
	<key>EnvironmentVariables</key>
	<dict>
		<key>HOME</key>
		<string>/Users/m1</string>
		<key>PATH</key>
		<string>/usr/bin:/bin</string>
	</dict>
	<key>RunAtLoad</key>
	<true/>
	<key>KeepAlive</key>
	<true/>
	<key>ThrottleInterval</key>
	<integer>10</integer>
	<key>StandardOutPath</key>
	<string>/var/log/agent.log</string>
	<key>StandardErrorPath</key>
	<string>/var/log/agent.log</string>
</dict>
</plist>
`

func TestPlist(t *testing.T) {
	t.Parallel()
	if d := cmp.Diff(rendered, launchd.Plist(agent())); d != "" {
		t.Error(d)
	}
	minimal := launchd.Plist(launchd.Job{Label: "x", Arguments: []string{"/bin/true"}})
	for _, key := range []string{"UserName", "Environment", "RunAtLoad", "KeepAlive", "Throttle", "Standard"} {
		if strings.Contains(minimal, key) {
			t.Errorf("an empty %s is rendered:\n%s", key, minimal)
		}
	}
}

func drawJob(t *rapid.T) launchd.Job {
	// launchctl's page cannot tell a value that is a lone brace from the begin of a
	// list. No account, file or program of macfleet's has that name.
	named := func(s string) bool { return s != "{" }
	word := rapid.StringMatching(`[ -~äß語]{0,12}`).Filter(named)
	full := rapid.StringMatching(`[!-~äß語][ -~]{0,12}`).Filter(named)
	return launchd.Job{Label: full.Draw(t, "label"), User: word.Draw(t, "user"), Arguments: rapid.SliceOfN(full, 1, 5).Draw(t, "arguments"),
		Environment: rapid.MapOfN(rapid.StringMatching(`[A-Z]{1,5}`), full, 0, 3).Draw(t, "environment"),
		RunAtLoad:   rapid.Bool().Draw(t, "load"), KeepAlive: rapid.Bool().Draw(t, "keep"), Throttle: rapid.IntRange(0, 99).Draw(t, "throttle"),
		Stdout: word.Draw(t, "stdout"), Stderr: word.Draw(t, "stderr")}
}

// TestPlistRoundTrip: what is rendered is read back as it was, and two jobs never have the same text.
func TestPlistRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		one, other := drawJob(t), drawJob(t)
		got, err := launchd.ParsePlist(launchd.Plist(one))
		if err != nil {
			t.Fatalf("%v\n%s", err, launchd.Plist(one))
		}
		if d := cmp.Diff(one, got, cmpopts.EquateEmpty()); d != "" {
			t.Fatal(d)
		}
		if same := cmp.Equal(one, other, cmpopts.EquateEmpty()); same != (launchd.Plist(one) == launchd.Plist(other)) {
			t.Fatalf("%+v and %+v", one, other)
		}
	})
}

func TestParsePlistRefusesOthers(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"empty":          "",
		"cut off":        rendered[:len(rendered)-20],
		"another key":    strings.Replace(rendered, "\t<key>RunAtLoad", "\t<key>Nice</key>\n\t<integer>5</integer>\n\t<key>RunAtLoad", 1),
		"a remark":       strings.Replace(rendered, "<dict>\n", "<dict>\n<!-- by hand -->\n", 1),
		"another kind":   strings.Replace(rendered, "<integer>10</integer>", "<string>10</string>", 1),
		"another order":  strings.Replace(rendered, "\t<key>RunAtLoad</key>\n\t<true/>\n\t<key>KeepAlive</key>\n", "\t<key>KeepAlive</key>\n\t<true/>\n\t<key>RunAtLoad</key>\n", 1),
		"a hash of jobs": strings.Replace(rendered, "<true/>", "<dict><key>SuccessfulExit</key><false/></dict>", 2),
	} {
		if _, err := launchd.ParsePlist(text); !errors.Is(err, launchd.ErrNotManaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// page is a service as launchctl shows it.
func page(j launchd.Job, more string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "system/%s = {\n\tactive count = 1\n\tpath = /Library/LaunchDaemons/%s.plist\n\ttype = LaunchDaemon\n", j.Label, j.Label)
	fmt.Fprintf(&b, "\n\tprogram = %s\n\targuments = {\n", j.Program())
	for _, arg := range j.Arguments {
		b.WriteString("\t\t" + arg + "\n")
	}
	b.WriteString("\t}\n\n")
	if j.Stdout != "" {
		b.WriteString("\tstdout path = " + j.Stdout + "\n")
	}
	if j.Stderr != "" {
		b.WriteString("\tstderr path = " + j.Stderr + "\n")
	}
	b.WriteString("\tdefault environment = {\n\t\tPATH => /usr/bin:/bin:/usr/sbin:/sbin\n\t}\n\n\tenvironment = {\n")
	for _, name := range slices.Sorted(maps.Keys(j.Environment)) {
		b.WriteString("\t\t" + name + " => " + j.Environment[name] + "\n")
	}
	b.WriteString("\t\tXPC_SERVICE_NAME => " + j.Label + "\n\t}\n\n\tdomain = system\n")
	if j.User != "" {
		b.WriteString("\tusername = " + j.User + "\n")
	}
	if j.Throttle > 0 {
		fmt.Fprintf(&b, "\tminimum runtime = %d\n", j.Throttle)
	}
	b.WriteString(more)
	if j.KeepAlive {
		b.WriteString("\tproperties = keepalive | runatload | inferred program | managed LWCR\n")
	}
	b.WriteString("}\n")
	return b.String()
}

func TestParsePrint(t *testing.T) {
	t.Parallel()
	j := agent()
	for _, tc := range []struct {
		name, more string
		want       launchd.Service
	}{
		{"running", "\tstate = running\n\truns = 3\n\tpid = 4242\n\tlast exit code = (never exited)\n",
			launchd.Service{State: launchd.Running, Runs: 3, PID: 4242, LastExit: "(never exited)"}},
		{"crashes", "\tstate = spawn scheduled\n\truns = 17\n\tlast exit code = 78: EX_CONFIG\n\tjob state = spawn failed\n",
			launchd.Service{State: launchd.Scheduled, Runs: 17, LastExit: "78: EX_CONFIG"}},
		{"killed", "\tstate = spawn scheduled\n\truns = 9\n\tlast exit reason = OS_REASON_CODESIGNING\n",
			launchd.Service{State: launchd.Scheduled, Runs: 9, LastReason: "OS_REASON_CODESIGNING"}},
		{"terminated", "\tstate = SIGTERMed\n\truns = 2\n\tpid = 7\n\tlast terminating signal = Terminated: 15\n",
			launchd.Service{State: "SIGTERMed", Runs: 2, PID: 7, LastExit: "Terminated: 15"}},
	} {
		want := tc.want
		want.Program, want.Arguments, want.User = j.Program(), j.Arguments, j.User
		want.Environment = map[string]string{"HOME": "/Users/m1", "PATH": "/usr/bin:/bin", "XPC_SERVICE_NAME": j.Label}
		want.Stdout, want.Stderr, want.Throttle = j.Stdout, j.Stderr, 10
		want.Properties = []string{"keepalive", "runatload", "inferred program", "managed LWCR"}
		got, err := launchd.ParsePrint(page(j, tc.more))
		if err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", tc.name, d)
		}
		if got.KilledBySignature() != (tc.name == "killed") || got.Differs(j) != nil {
			t.Errorf("%s: %+v, differs %v", tc.name, got, got.Differs(j))
		}
	}
}

// TestPrintDiffers: each part of the description that launchctl shows is compared, and what an older release does not show does not differ.
func TestPrintDiffers(t *testing.T) {
	t.Parallel()
	base, err := launchd.ParsePrint(page(agent(), ""))
	if err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*launchd.Job){
		"program,arguments": func(j *launchd.Job) { j.Arguments = []string{"/usr/local/bin/other"} },
		"arguments":         func(j *launchd.Job) { j.Arguments = append(slices.Clone(j.Arguments), "--more") },
		"user":              func(j *launchd.Job) { j.User = "anna" },
		"log":               func(j *launchd.Job) { j.Stderr = "/var/log/other" },
		"throttle":          func(j *launchd.Job) { j.Throttle = 11 },
		"environment":       func(j *launchd.Job) { j.Environment = map[string]string{"HOME": "/", "PATH": "/"} },
	} {
		j := agent()
		change(&j)
		if got := strings.Join(base.Differs(j), ","); got != want {
			t.Errorf("differs %q, want %q", got, want)
		}
	}
	lazy := agent()
	lazy.KeepAlive = false
	once, err := launchd.ParsePrint(page(lazy, "\tproperties = runatload\n"))
	if got := once.Differs(agent()); err != nil || !slices.Equal(got, []string{"keepalive"}) {
		t.Errorf("%v, %v", got, err)
	}
	if got := (launchd.Service{Arguments: agent().Arguments}).Differs(agent()); got != nil {
		t.Errorf("what is not shown differs: %v", got)
	}
}

func TestPrintRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		j := drawJob(t)
		got, err := launchd.ParsePrint(page(j, "\tstate = running\n\tpid = 9\n"))
		if err != nil || got.PID != 9 || len(got.Differs(j)) > 0 {
			t.Fatalf("%+v of %+v: %v, differs %v", got, j, err, got.Differs(j))
		}
	})
}

func TestParsePrintRefuses(t *testing.T) {
	t.Parallel()
	whole := page(agent(), "\tpid = 1\n")
	for name, text := range map[string]string{
		"nothing":       "",
		"another tool":  "Could not find service\n",
		"cut off":       whole[:len(whole)/2],
		"a list":        "x = {\n\targuments = {\n\t\ta\n}\n",
		"no number":     strings.Replace(whole, "pid = 1", "pid = one", 1),
		"one line only": "x = {\n",
	} {
		if _, err := launchd.ParsePrint(text); !errors.Is(err, launchd.ErrNoService) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzParsePrint(f *testing.F) {
	f.Add(page(agent(), "\tstate = running\n\tpid = 4242\n"))
	f.Add("x = {\n\targuments = {\n\t}\n}\n")
	f.Add("x = {\n\targuments = {\nloose\n\t}\n}\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := launchd.ParsePrint(text)
		if err != nil && !cmp.Equal(s, launchd.Service{}) {
			t.Errorf("%+v with %v", s, err)
		}
		_ = s.Differs(agent())
	})
}

func FuzzParsePlist(f *testing.F) {
	f.Add(rendered)
	f.Add(launchd.Plist(launchd.Job{}))
	f.Fuzz(func(t *testing.T, text string) {
		j, err := launchd.ParsePlist(text)
		if err == nil && launchd.Plist(j) != text {
			t.Errorf("%q is read as %+v", text, j)
		}
	})
}
