package sandbox

import (
	"context"
	"fmt"
	"strings"
)

// setting is one value on a Mac that an incident changes.
type setting struct {
	name  string
	wrong string
	read  func(context.Context, *victim) (string, error)
	write func(value string) (script string)
}

func sleepSettings() []setting {
	return []setting{power("sleep"), power("displaysleep")}
}

func nameSettings() []setting {
	return []setting{computerName("ComputerName", "old-name"), computerName("HostName", "old-name.local")}
}

// power is a setting of power management, in minutes.
func power(name string) setting {
	return setting{
		name:  name,
		wrong: "10",
		read: func(ctx context.Context, v *victim) (string, error) {
			shown, err := v.run(ctx, "pmset -g")
			if err != nil {
				return "", err
			}
			for line := range strings.Lines(shown) {
				// What prevents sleep now may follow the value.
				if fields := strings.Fields(line); len(fields) >= 2 && fields[0] == name {
					return fields[1], nil
				}
			}
			return "", fmt.Errorf("pmset -g does not show %s", name)
		},
		write: func(value string) string { return "pmset -a " + name + " " + quote(value) },
	}
}

// computerName is one of the Mac's own names; "" if it is not set.
func computerName(name, wrong string) setting {
	return setting{
		name:  name,
		wrong: wrong,
		read: func(ctx context.Context, v *victim) (string, error) {
			return v.run(ctx, "scutil --get "+name+" 2>/dev/null || true")
		},
		write: func(value string) string { return "scutil --set " + name + " " + quote(value) },
	}
}

// quote quotes a value for the shell.
func quote(value string) string {
	return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
}

func rememberSettings(settings func() []setting) func(context.Context, *victim) error {
	return func(ctx context.Context, v *victim) error {
		v.record.Settings = map[string]string{}
		for _, s := range settings() {
			value, err := s.read(ctx, v)
			if err != nil {
				return err
			}
			v.record.Settings[s.name] = value
		}
		return nil
	}
}

func breakSettings(settings func() []setting) func(context.Context, *victim) error {
	return func(ctx context.Context, v *victim) error {
		for _, s := range settings() {
			if _, err := v.run(ctx, s.write(s.wrong)); err != nil {
				return err
			}
		}
		return nil
	}
}

func settingsBroken(settings func() []setting) func(context.Context, *victim) (bool, error) {
	return func(ctx context.Context, v *victim) (bool, error) {
		for _, s := range settings() {
			if value, err := s.read(ctx, v); err != nil || value == s.wrong {
				return err == nil, err
			}
		}
		return false, nil
	}
}

// restoreSettings resets each value that is still the wrong one: a repair may have been partial.
func restoreSettings(settings func() []setting) func(context.Context, *victim) error {
	return func(ctx context.Context, v *victim) error {
		for _, s := range settings() {
			value, err := s.read(ctx, v)
			if err != nil {
				return err
			}
			before, known := v.record.Settings[s.name]
			if value != s.wrong || !known {
				continue
			}
			if _, err := v.run(ctx, s.write(before)); err != nil {
				return err
			}
		}
		return nil
	}
}
