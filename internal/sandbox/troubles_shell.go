package sandbox

import (
	"context"
	"fmt"
)

// shellTroubles are incidents that root scripts on the Mac can cause.
func shellTroubles() []trouble {
	const lock = "defaults write /Library/Preferences/com.apple.loginwindow autoLoginUserScreenLocked -bool "
	const left = "/usr/local/lib/.tart.old.sandbox"
	return []trouble{
		shellTrouble("session-screen-locked", "automatic login starts a GUI session with its screen locked",
			lock+"true", `[ "$(defaults read /Library/Preferences/com.apple.loginwindow autoLoginUserScreenLocked 2>/dev/null)" = 1 ]`, lock+"false"),
		shellTrouble("tart-leftover", "macOS refused to remove a replaced bundle of Tart",
			"mkdir -p "+left+"/tart.app", "[ -d "+left+" ]", "rm -rf "+left),
	}
}

// shellTrouble is an incident that three scripts cause, detect and cure.
func shellTrouble(name, summary, cause, lasts, cure string) trouble {
	exit := func(ctx context.Context, v *victim, script string) (int, error) {
		machine, err := v.machine()
		if err != nil {
			return 0, err
		}
		answer, err := machine.Run(ctx, "root", script)
		return answer.Exit, err
	}
	must := func(script string) func(context.Context, *victim) error {
		return func(ctx context.Context, v *victim) error {
			code, err := exit(ctx, v, script)
			if err == nil && code != 0 {
				err = fmt.Errorf("%q failed with exit code %d", script, code)
			}
			return err
		}
	}
	return trouble{
		Incident: Incident{name, summary}, remember: nothing, cause: must(cause), cure: must(cure),
		lasts: func(ctx context.Context, v *victim) (bool, error) {
			code, err := exit(ctx, v, lasts)
			return err == nil && code == 0, err
		},
	}
}
