package plan

import "github.com/macfleet/macfleet/fleet"

// CheckLists returns an error when no plan must be made of what the providers list
// (CheckInventory, CheckSelection). What hosts said is left aside: a recorded
// observation is judged as it was before any host was asked.
func CheckLists(cfg *fleet.Config, snap Snapshot, sel Selection) error {
	snap.Hosts = nil
	if err := CheckInventory(cfg, snap); err != nil {
		return err
	}
	return CheckSelection(cfg, snap, sel)
}
