package sandbox

import (
	"context"
	"fmt"
	"net/url"

	"github.com/macfleet/macfleet/internal/sandbox/cloud"
)

// concealed is what the provider reports of a server some hours after the order.
func concealed(before cloud.Passwords) cloud.Passwords {
	address, err := url.Parse(before.VNC)
	if err != nil || address.User == nil {
		return cloud.Passwords{VNC: before.VNC}
	}
	address.User = url.User(address.User.Username())
	return cloud.Passwords{VNC: address.String()}
}

// placeholders is what it reports to a client without the right to read passwords.
func placeholders(cloud.Passwords) cloud.Passwords { return cloud.Sealed() }

func rememberDisclosure(ctx context.Context, v *victim) error {
	passes, err := v.freePasses(ctx)
	v.record.Settings, v.record.Reported = passes, &cloud.Passwords{Sudo: v.server.SudoPassword, VNC: v.server.VncURL}
	return err
}

func (v *victim) reportedBefore() (before cloud.Passwords, err error) {
	if v.record.Reported == nil {
		return before, fmt.Errorf("the record of %s lacks what the provider reported before", v.record.Incident)
	}
	return *v.record.Reported, nil
}

func disclose(as func(cloud.Passwords) cloud.Passwords) func(context.Context, *victim) error {
	return func(_ context.Context, v *victim) error {
		before, err := v.reportedBefore()
		if err != nil {
			return err
		}
		err = v.world.cloud.Disclose(v.server.ID, func(cloud.Passwords) (cloud.Passwords, bool) { return as(before), true })
		if err != nil {
			return err
		}
		return v.removePasses()
	}
}

func disclosed(as func(cloud.Passwords) cloud.Passwords) func(context.Context, *victim) (bool, error) {
	return func(ctx context.Context, v *victim) (bool, error) {
		before, err := v.reportedBefore()
		if err != nil || (cloud.Passwords{Sudo: v.server.SudoPassword, VNC: v.server.VncURL}) == as(before) {
			return err == nil, err
		}
		return v.passesGone(ctx)
	}
}

func discloseBack(as func(cloud.Passwords) cloud.Passwords) func(context.Context, *victim) error {
	return func(ctx context.Context, v *victim) error {
		before, err := v.reportedBefore()
		if err != nil {
			return err
		}
		err = v.world.cloud.Disclose(v.server.ID, func(present cloud.Passwords) (cloud.Passwords, bool) {
			return before, present == as(before)
		})
		if err != nil {
			return err
		}
		return v.restorePasses(ctx)
	}
}
