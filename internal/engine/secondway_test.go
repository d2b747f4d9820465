package engine_test

import "testing"

// TestProtectedLoginwindow: where macOS protects loginwindow from kickstart -k, a session is restored in the second
// way, whatever launchctl reports meanwhile. A screen that would come up locked is unlocked together with it.
func TestProtectedLoginwindow(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"1", "150"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			w, e := converged(t, 3, hostCore("production", 1))
			host := planned(t, e).Hosts[0].Name
			m, err := w.Mac(host)
			if err != nil {
				t.Fatal(err)
			}
			for name, value := range map[string]string{"launchctl-kickstart-system": code, "loginwindow-after-kill": "starts-it", "launchctl-session-coming-up": "36"} {
				if err := m.SetSwitch(name, value); err != nil {
					t.Fatal(err)
				}
			}
			for _, incident := range []string{"no-gui-session", "dead-loginwindow"} {
				if err := w.Inject(host, incident); err != nil {
					t.Fatal(err)
				}
				converges(t, e)
				if s, err := m.Screen(); err != nil || s.User == "" {
					t.Errorf("%s, %s: the screen is %+v, %v", code, incident, s, err)
				}
			}
			before, err := m.SessionSince()
			if err != nil {
				t.Fatal(err)
			}
			const lock = "defaults write /Library/Preferences/com.apple.loginwindow autoLoginUserScreenLocked -bool true"
			if said, err := m.Run(t.Context(), "root", lock); err != nil || said.Exit != 0 {
				t.Fatalf("%+v, %v", said, err)
			}
			if said := codesOf(planned(t, e), host); len(said) != 1 || said[0] != "drift session-comes-up-locked" {
				t.Errorf("it says %q", said)
			}
			converges(t, e)
			if after, err := m.SessionSince(); err != nil || !after.Equal(before) {
				t.Errorf("the session started at %s and then at %s, %v", before, after, err)
			}
		})
	}
}
