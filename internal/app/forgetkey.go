package app

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/plan"
)

// ForgetKeyOptions are the flags of hosts forget-key.
type ForgetKeyOptions struct {
	Fingerprint string // of the key that is accepted; empty: a person is prompted
}

// ForgetKey forgets what is known of the keys of hosts, and pins those that they offer now.
func ForgetKey(ctx context.Context, env *Env, o ForgetKeyOptions) error {
	want := plan.Voucher{Key: strings.TrimSpace(o.Fingerprint)}.Fingerprint()
	if err := cmp.Or(
		refuse(env.gave("fingerprint") && !strings.HasPrefix(want, "SHA256:"), "--fingerprint %q: write it as ssh-keygen -lf prints it, SHA256:…", o.Fingerprint),
		refuse(want != "" && len(env.Args) > 1, "--fingerprint applies to one host: name one host")); err != nil {
		return err
	}
	return env.with(ctx, need{}, func(looking context.Context, s *session) error {
		s.warnInProgress(looking)
		all, err := s.offers(looking)
		if err != nil {
			return err
		}
		env.outText().OfferedKeys(all)
		all = slices.DeleteFunc(all, view.KeyOffer.Agrees)
		if len(all) == 0 {
			return nil
		}
		for _, offer := range all {
			if given := offer.Deciding(); want != "" && given != want {
				return fmt.Errorf("%s: --fingerprint is %s, but the key is %s; nothing was changed: check which one is the host's", offer.Name, want, given)
			}
		}
		remedy := plan.CompareKey(all[0].Key) + "; then pass --fingerprint SHA256:…"
		if all[0].Gone { // nothing is left that a key could be compared on
			remedy = "if the server is really gone, pass --fingerprint with the pinned key"
		}
		if err := env.approvable("hosts forget-key", want != "", true, remedy); err != nil {
			return err
		}
		if err := env.ask(want != "", view.KeyQuestion(all)); err != nil {
			return err
		}
		env.acting.Store(true)
		return s.accept(ctx, all)
	})
}

// offers asks the hosts that the arguments name for their keys, and goes no further with any.
func (s *session) offers(ctx context.Context) ([]view.KeyOffer, error) {
	snap, err := s.engine.Lists(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]view.KeyOffer, 0, len(s.env.Args))
	for _, name := range s.env.Args {
		h, err := plan.HolderOf(s.config, snap, name)
		if err != nil {
			return nil, err
		}
		offer := view.KeyOffer{KeyHolder: h}
		if !h.Gone {
			if offer.Key, err = s.hosts.Key(ctx, hosts.Target{Server: h.Server, Name: h.Name, Trust: h.Trust}); err != nil {
				return nil, fmt.Errorf("%w; nothing was changed", err)
			}
		}
		for _, v := range h.Trust.Vouchers {
			if v.Configured && v.Fingerprint() != plan.Fingerprint(offer.Key) {
				return nil, fmt.Errorf("%s: it offers the key %s, and %s says %s; nothing was changed: correct the configuration first",
					h.Name, plan.Fingerprint(offer.Key), v.By, v.Fingerprint())
			}
		}
		out = append(out, offer)
	}
	return out, nil
}

// accept pins the offered keys in the place of all that was known before, and forgets those of
// servers that are gone.
func (s *session) accept(ctx context.Context, all []view.KeyOffer) error {
	now := time.Now().UTC()
	err := s.engine.Pins.Update(func(pins []plan.Pin) []plan.Pin {
		for _, o := range all {
			pins = o.Accept(pins, plan.Pin{Key: o.Key, Since: now, Unfinished: o.Unfinished(), Accepted: caller() + " " + now.Format(time.DateOnly)})
		}
		return pins
	})
	if err != nil {
		return err
	}
	for _, o := range all {
		s.env.logged(slog.LevelInfo, "forgot key", "host", o.Name, "server", o.Server.ID, "now", plan.Fingerprint(o.Key))
		if o.Node != nil {
			if err := s.kubernetes.NoteHostKey(ctx, *o.Node, plan.KeyNote(o.Key, plan.Fingerprint(o.Key))); err != nil {
				return fmt.Errorf("%s: the key is pinned, but its Node still has another: %w; run the command again", o.Name, err)
			}
		}
	}
	s.env.outText().AcceptedKeys(all)
	return nil
}
