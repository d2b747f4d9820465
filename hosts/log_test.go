package hosts

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/plan"
)

// TestLog notes connections and execs, and nothing of the output.
func TestLog(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	c, _ := sshdTarget(t, func(o *Options) {
		o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	conn := connect(t, c, acme1())
	command := plan.Command{Name: "speak", Script: "read -r given\nprintf '%s' \"$given\"\nexit 3\n", As: plan.Login}
	input, err := secret.New("sentinel-of-input")
	must(t, err)
	a, err := conn.Run(within(t), command, input)
	if !scriptFailed(err) || a.Exit != 3 || a.Stdout != "sentinel-of-input" {
		t.Fatalf("%+v, %v", a, err)
	}
	text := log.String()
	for _, want := range []string{"msg=connect host=", "msg=exec host=", "scripts=speak sent=", "received=17 not_zero=speak:3\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("the log lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "sentinel") {
		t.Errorf("the log contains output:\n%s", text)
	}
}
