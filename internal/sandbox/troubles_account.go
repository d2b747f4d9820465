package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/internal/sandbox/cloud"
	"github.com/macfleet/macfleet/internal/sandbox/store"
)

// accountTroubles are the incidents of the account and the pool.
func accountTroubles() []trouble {
	return []trouble{
		ofRights("revoked-key", "someone deleted the API key: every request is refused", map[string]string{"key": "revoked"}),
		ofRights("read-only-key", "the API key lost the rights to change servers and SSH keys", map[string]string{"update": "denied", "ssh_keys": "read-only"}),
		ofRights("wrong-project", "the API key belongs to another project, so lists of the project's servers are refused", map[string]string{"project": otherProject}),
		ofRights("iam-project-missing", "the API key belongs to one project, so lists of SSH keys without the project are refused", map[string]string{"scope": "project"}),
		{
			Incident: Incident{"rate-limited", "the provider refuses the next five requests with status 429 and Retry-After"}, place: Account,
			remember: nothing, cause: limitRate, lasts: failing("429"), cure: func(_ context.Context, v *victim) error { return v.world.cloud.Recover() },
		},
		{
			Incident: Incident{"answer-lost", "the provider does the next reinstallation or reboot, and its answer is cut off"}, place: Account,
			remember: nothing, cause: cutAnswer, lasts: failing("cut"), cure: func(_ context.Context, v *victim) error { return v.world.cloud.Recover() },
		},
		{
			Incident: Incident{"out-of-stock", "another team took the servers of the pool, and the provider has none in stock"}, place: Account,
			remember: rememberStock, cause: takeAll, lasts: allTaken, cure: restock,
		},
		{
			Incident: Incident{"os-family-gone", "the catalogue no longer has the macOS family of the pool"}, place: Account,
			remember: nothing, cause: dropFamily, lasts: familyGone, cure: restoreFamily,
		},
		{
			Incident: Incident{"install-fails", "the provider fails to install macOS at the next reinstallation"}, place: Account, remember: nothing,
			cause: func(_ context.Context, v *victim) error {
				return v.world.cloud.Set(func(s *cloud.Settings) { s.FailInstalls = 1 })
			},
			lasts: func(_ context.Context, v *victim) (lasts bool, err error) {
				err = v.world.cloud.Set(func(s *cloud.Settings) { lasts = s.FailInstalls > 0 })
				return lasts, err
			},
			cure: func(_ context.Context, v *victim) error {
				return v.world.cloud.Set(func(s *cloud.Settings) { s.FailInstalls = 0 })
			},
		},
		{
			Incident: Incident{"stray-server", "someone ordered a server of the project for another purpose"}, place: Account,
			remember: nothing, cause: addStray("ci-scratch"), lasts: strayThere, cure: removeStray,
		},
		{
			Incident: Incident{"unnamed-orphan", "a server has the name that the provider gave it, and the marker of a fleet's host"}, place: Account,
			remember: nothing, cause: addUnnamed, lasts: strayThere, cure: removeStray,
		},
		on(firstMember, trouble{
			Incident: Incident{"moved-project", "someone moved a fleet's server to another project"},
			remember: nothing, cause: moveProject, lasts: projectMoved, cure: moveBack,
		}),
		on(firstPooled, trouble{
			Incident: Incident{"half-made-claim", "a run claimed a server of the pool and was killed before it wrote the marker and the name"},
			remember: rememberClaim, cause: plantClaim, lasts: claimPlanted, cure: dropClaim,
		}),
		on(firstPooled, trouble{
			Incident: Incident{"dirty-pool-host", "a server of the pool was never wiped: it has the marker and the job of its former owner"},
			remember: rememberForeignMarker, cause: soil, lasts: markerPlanted, cure: clean,
		}),
	}
}

// ofRights is the incident that the API key lacks rights.
func ofRights(name, summary string, lost map[string]string) trouble {
	change := func(v *victim, do func(lacking map[string]string)) error { return v.world.cloud.Rights(do) }
	return trouble{
		Incident: Incident{name, summary}, place: Account, remember: nothing,
		cause: func(_ context.Context, v *victim) error {
			return change(v, func(lacking map[string]string) {
				for field, value := range lost {
					lacking[field] = value
				}
			})
		},
		lasts: func(_ context.Context, v *victim) (lasts bool, err error) {
			err = change(v, func(lacking map[string]string) {
				for field, value := range lost {
					lasts = lasts || lacking[field] == value
				}
			})
			return lasts, err
		},
		cure: func(_ context.Context, v *victim) error {
			return change(v, func(lacking map[string]string) {
				for field, value := range lost {
					if lacking[field] == value {
						delete(lacking, field)
					}
				}
			})
		},
	}
}

func limitRate(_ context.Context, v *victim) error {
	return v.world.cloud.Fail(cloud.Fault{Requests: 5, Answer: "429", RetryAfter: "1"})
}

func cutAnswer(_ context.Context, v *victim) error {
	return v.world.cloud.Fail(cloud.Fault{Requests: 1, Only: "POST /apple-silicon", Answer: "cut"})
}

// failing reports whether requests will get an answer.
func failing(answer string) func(context.Context, *victim) (bool, error) {
	return func(_ context.Context, v *victim) (bool, error) {
		left, err := v.world.cloud.Faults()
		return slices.ContainsFunc(left, func(f cloud.Fault) bool { return f.Answer == answer }), err
	}
}

// takenBy is the beginning of the names that another team gives to the servers that it takes.
const takenBy = "globex-ci-"

// rememberStock records the free servers' names.
func rememberStock(_ context.Context, v *victim) error {
	all, err := v.world.cloud.Servers()
	v.record.Settings = map[string]string{}
	for _, s := range all {
		if v.world.pooled(s) {
			v.record.Settings[s.ID] = s.Name
		}
	}
	if err != nil {
		return err
	}
	return v.world.cloud.Set(func(s *cloud.Settings) { v.record.File, err = store.Encode(s.Stock) })
}

func takeAll(_ context.Context, v *victim) error {
	failed := []error{v.world.cloud.Set(func(s *cloud.Settings) { s.Stock = nil })}
	for id := range v.record.Settings {
		failed = append(failed, v.world.cloud.Rename(id, func(string) (string, bool) { return takenBy + id[:5], true }))
	}
	return errors.Join(failed...)
}

func allTaken(_ context.Context, v *victim) (bool, error) {
	all, err := v.world.cloud.Servers()
	return slices.ContainsFunc(all, func(s cloud.Server) bool { return s.Name == takenBy+s.ID[:5] }), err
}

func restock(_ context.Context, v *victim) error {
	var stock map[string]int
	failed := []error{json.Unmarshal(v.record.File, &stock)}
	failed = append(failed, v.world.cloud.Set(func(s *cloud.Settings) {
		if s.Stock == nil {
			s.Stock = stock
		}
	}))
	for id, name := range v.record.Settings {
		failed = append(failed, v.world.cloud.Rename(id, func(present string) (string, bool) { return name, present == takenBy+id[:5] }))
	}
	return errors.Join(failed...)
}

// poolFamily is the macOS family of the servers of a new world.
const poolFamily = "Tahoe"

func dropFamily(_ context.Context, v *victim) error {
	return v.world.cloud.Set(func(s *cloud.Settings) { s.Gone = append(s.Gone, poolFamily) })
}

func familyGone(_ context.Context, v *victim) (gone bool, err error) {
	err = v.world.cloud.Set(func(s *cloud.Settings) { gone = slices.Contains(s.Gone, poolFamily) })
	return gone, err
}

func restoreFamily(_ context.Context, v *victim) error {
	return v.world.cloud.Set(func(s *cloud.Settings) {
		s.Gone = slices.DeleteFunc(s.Gone, func(name string) bool { return name == poolFamily })
	})
}

// addStray adds a delivered server under a name.
func addStray(name string) func(context.Context, *victim) error {
	return func(_ context.Context, v *victim) error {
		server, err := v.world.cloud.Deliver(v.world.settings.Zones[0], "M2-L", name)
		if err != nil {
			return err
		}
		v.record.Server = server.ID
		return v.rewrite()
	}
}

// rewrite stores the record after its cause has added to it.
func (v *victim) rewrite() error {
	open, err := v.world.incidentsOf(v.server.ID)
	if err != nil {
		return err
	}
	return v.world.keep(v.server.ID, append(open.without(v.record.Incident), v.record))
}

func strayThere(_ context.Context, v *victim) (bool, error) {
	_, found, err := v.world.cloud.Server(v.record.Server)
	return found, err
}

func removeStray(_ context.Context, v *victim) error { return v.world.cloud.Remove(v.record.Server) }

// addUnnamed adds a server that was claimed for a fleet but whose rename never happened.
func addUnnamed(ctx context.Context, v *victim) error {
	if err := addStray("as-wonderful-lamport")(ctx, v); err != nil {
		return err
	}
	server, found, err := v.world.cloud.Server(v.record.Server)
	if err != nil || !found {
		return err
	}
	made := &victim{v.world, server, v.record}
	fields, err := made.ownMarker()
	if err != nil {
		return err
	}
	data, err := store.Encode(fields)
	if err != nil {
		return err
	}
	return made.writeMarker(data)
}

// ownMarker returns the marker that the fleet of the first host with a marker would write on this Mac.
func (v *victim) ownMarker() (map[string]any, error) {
	own, err := v.world.macs.factory(v.server)
	if err != nil {
		return nil, err
	}
	data, err := v.anyMarker()
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var fields map[string]any
	if err := decoder.Decode(&fields); err != nil || fields == nil {
		fields = map[string]any{"configuration": "acme", "environment": "production", "fleet": "runners", "group": "m2", "version": "0.1.0", "steps": map[string]any{}}
	}
	name := []string{}
	for _, part := range []string{"configuration", "environment", "fleet", "group"} {
		name = append(name, fmt.Sprint(fields[part]))
	}
	fields["name"] = strings.Join(append(name, v.server.ID[:5]), "-")
	fields["server_id"], fields["serial"] = v.server.ID, own.Serial
	return fields, nil
}

// anyMarker returns the marker of the first host that has one, or nil.
func (v *victim) anyMarker() ([]byte, error) {
	all, err := v.world.cloud.Servers()
	if err != nil {
		return nil, err
	}
	for _, server := range all {
		machine, err := v.world.macs.get(server)
		if err != nil {
			return nil, err
		}
		data, err := machine.ReadFile(markerFile)
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return data, err
		}
	}
	return nil, nil
}

// otherProject is a project that the API key does not see.
const otherProject = "5eed0000-0000-4000-8000-000000000009"

func moveProject(_ context.Context, v *victim) error {
	return v.world.cloud.Edit(v.server.ID, func(s *cloud.Server) bool { s.ProjectID = otherProject; return true })
}

func projectMoved(_ context.Context, v *victim) (bool, error) {
	return v.server.ProjectID == otherProject, nil
}

func moveBack(_ context.Context, v *victim) error {
	return v.world.cloud.Edit(v.server.ID, func(s *cloud.Server) bool {
		moved := s.ProjectID == otherProject
		s.ProjectID = v.world.settings.ProjectID
		return moved
	})
}

const claimFile = markerFolder + "/claim.json"

func rememberClaim(_ context.Context, v *victim) error {
	fields, err := v.ownMarker()
	if err != nil {
		return err
	}
	v.record.Planted, err = json.Marshal(map[string]any{
		"configuration": fields["configuration"], "environment": fields["environment"], "name": fields["name"],
		"server_id": v.server.ID, "nonce": "killed-by-the-sandbox",
	})
	return err
}

func plantClaim(_ context.Context, v *victim) error {
	machine, err := v.machine()
	if err != nil {
		return err
	}
	return machine.WriteFile(claimFile, v.record.Planted, 0, 0, 0o644)
}

func claimPlanted(_ context.Context, v *victim) (bool, error) {
	machine, err := v.machine()
	if err != nil {
		return false, err
	}
	data, err := machine.ReadFile(claimFile)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return bytes.Equal(data, v.record.Planted), err
}

// dropClaim removes the claim, unless a run has finished it since.
func dropClaim(ctx context.Context, v *victim) error {
	planted, err := claimPlanted(ctx, v)
	if err != nil || !planted {
		return err
	}
	if marker, err := v.marker(); err != nil || marker != nil {
		return err
	}
	_, err = v.run(ctx, "rm -f "+claimFile+" && { rmdir "+markerFolder+" 2>/dev/null || true; }")
	return err
}

// soil leaves what a former owner leaves: the marker and the job of the older tool.
func soil(ctx context.Context, v *victim) error {
	if err := plantMarker(ctx, v); err != nil {
		return err
	}
	machine, err := v.machine()
	if err != nil {
		return err
	}
	return machine.WriteFile(otherPlist, []byte(leftPlist), 0, 0, 0o644)
}

// leftPlist is the property list of the older tool's job. It was never loaded since the last start.
const leftPlist = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0"><dict><key>Label</key><string>` + otherLabel + `</string><key>ProgramArguments</key>
<array><string>/usr/local/bin/tart-kubelet</string></array></dict></plist>
`

func clean(ctx context.Context, v *victim) error {
	machine, err := v.machine()
	if err != nil {
		return err
	}
	if data, err := machine.ReadFile(otherPlist); err == nil && string(data) == leftPlist {
		if err := machine.Remove(otherPlist); err != nil {
			return err
		}
	}
	return unplantMarker(ctx, v)
}
