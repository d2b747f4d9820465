package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"

	"github.com/macfleet/macfleet/internal/sandbox/store"
)

const (
	markerFolder = "/etc/macfleet"
	markerFile   = markerFolder + "/host.json"
)

// marker returns the present marker, or nil.
func (v *victim) marker() ([]byte, error) {
	machine, err := v.machine()
	if err != nil {
		return nil, err
	}
	data, err := machine.ReadFile(markerFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if data == nil && err == nil {
		data = []byte{} // an empty file is not a missing one
	}
	return data, err
}

func (v *victim) writeMarker(data []byte) error {
	machine, err := v.machine()
	if err != nil {
		return err
	}
	return machine.WriteFile(markerFile, data, 0, 0, 0o644)
}

func rememberMarker(_ context.Context, v *victim) error {
	data, err := v.marker()
	v.record.File, v.record.HadFile = data, data != nil
	return err
}

func rememberForeignMarker(ctx context.Context, v *victim) error {
	if err := rememberMarker(ctx, v); err != nil {
		return err
	}
	own, err := v.world.macs.factory(v.server)
	if err != nil {
		return err
	}
	v.record.Planted, err = foreignMarker(v.record.File, v.server.ID, own.Serial)
	return err
}

// foreignMarker returns the marker that another owner would have written on this machine. It keeps the
// fields of an existing marker that do not identify the owner.
func foreignMarker(present []byte, id, serial string) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(present))
	decoder.UseNumber()
	var fields map[string]any
	if err := decoder.Decode(&fields); err != nil || fields == nil {
		fields = map[string]any{
			"fleet":       "runners",
			"group":       "m2",
			"server_id":   id,
			"serial":      serial,
			"cluster_uid": "6c0b8a52-7d7e-4d0c-9a6f-3a1f0c9e2b41",
			"version":     "0.1.0",
			"steps":       map[string]any{},
		}
	}
	fields["configuration"] = "globex"
	fields["environment"] = "staging"
	fields["name"] = "globex-staging-runners-m2-" + id[:5]
	return store.Encode(fields)
}

func plantMarker(_ context.Context, v *victim) error {
	return v.writeMarker(v.record.Planted)
}

func markerPlanted(_ context.Context, v *victim) (bool, error) {
	data, err := v.marker()
	return data != nil && bytes.Equal(data, v.record.Planted), err
}

func unplantMarker(ctx context.Context, v *victim) error {
	planted, err := markerPlanted(ctx, v)
	if err != nil || !planted {
		return err
	}
	if v.record.HadFile {
		return v.writeMarker(v.record.File)
	}
	machine, err := v.machine()
	if err != nil {
		return err
	}
	if err := machine.Remove(markerFile); err != nil {
		return err
	}
	// A claim creates the folder first, so an empty one would look like an unfinished claim.
	_, err = v.run(ctx, "rmdir "+markerFolder+" 2>/dev/null || true")
	return err
}

func removeMarker(_ context.Context, v *victim) error {
	machine, err := v.machine()
	if err != nil {
		return err
	}
	return machine.Remove(markerFolder)
}

func markerGone(_ context.Context, v *victim) (bool, error) {
	data, err := v.marker()
	return data == nil && err == nil, err
}

func replaceMarker(ctx context.Context, v *victim) error {
	gone, err := markerGone(ctx, v)
	if err != nil || !gone || !v.record.HadFile {
		return err
	}
	return v.writeMarker(v.record.File)
}
