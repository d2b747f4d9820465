package sandbox

import (
	"context"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox/cloud"
)

// deletionLag is how far ahead the deletion of a server is scheduled: the rest of its lease.
const deletionLag = 6 * time.Hour

// serverTroubles are incidents of the server at the provider. Its Mac keeps running.
func serverTroubles() []trouble {
	return []trouble{
		{
			Incident: Incident{"deletion-scheduled", "someone scheduled the deletion of the server in the provider's console"},
			remember: nothing, cause: scheduleDeletion, lasts: deletionScheduled, cure: cancelDeletion,
		},
		ofStatus("server-busy", "updating", "the provider is changing the server's options"),
		ofStatus("server-reinstalling", "reinstalling", "the provider is wiping the server and reinstalling macOS"),
		ofStatus("server-locked", "locked", "the provider has locked the server"),
		ofStatus("stuck-in-locking", "locking", "the provider started to lock the server and never finishes"),
		{
			Incident: Incident{"reinstalled-by-hand", "someone reinstalled the server in the provider's console: nothing of the fleet is left on it"},
			remember: nothing, cause: reinstallByHand, lasts: reinstalledByHand, cure: nothing,
		},
		ofStatus("server-error", "error", "an operation of the provider on the server failed"),
	}
}

func reinstallByHand(_ context.Context, v *victim) error { return v.world.cloud.Reinstall(v.server.ID) }

// reinstalledByHand reports whether the Mac was not set up again since then. What was wiped does not come
// back when the incident is healed.
func reinstalledByHand(_ context.Context, v *victim) (bool, error) {
	data, err := v.marker()
	return v.server.Life.Installs > 0 && data == nil, err
}

func scheduleDeletion(_ context.Context, v *victim) error {
	return v.stand(func(present cloud.Standing) (cloud.Standing, bool) {
		present.DeletionScheduled, present.DeletableAt = true, time.Now().UTC().Add(deletionLag).Truncate(time.Second)
		return present, true
	})
}

func deletionScheduled(_ context.Context, v *victim) (bool, error) {
	return v.server.DeletionScheduled, nil
}

func cancelDeletion(_ context.Context, v *victim) error {
	return v.stand(func(present cloud.Standing) (cloud.Standing, bool) {
		scheduled := present.DeletionScheduled
		present.DeletionScheduled = false
		return present, scheduled
	})
}

func (v *victim) stand(change func(cloud.Standing) (cloud.Standing, bool)) error {
	return v.world.cloud.Stand(v.server.ID, change)
}

// ofStatus is the incident that a server has a status.
func ofStatus(name, status, summary string) trouble {
	set := func(v *victim, from, to string) error {
		return v.stand(func(present cloud.Standing) (cloud.Standing, bool) {
			may := from == "" || present.Status == from
			present.Status = to
			return present, may
		})
	}
	return trouble{
		Incident: Incident{name, "the provider reports status " + status + ": " + summary},
		remember: nothing,
		cause:    func(_ context.Context, v *victim) error { return set(v, "", status) },
		lasts:    func(_ context.Context, v *victim) (bool, error) { return v.server.Status == status, nil },
		cure:     func(_ context.Context, v *victim) error { return set(v, status, "ready") },
	}
}
