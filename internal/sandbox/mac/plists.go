package mac

import (
	"errors"
	"fmt"

	"github.com/micromdm/plist"
)

var errNoPlist = errors.New("not a property list")

// decodePlist reads a property list whose top is a dictionary. A person may have edited the file, and
// the library may panic on some content.
func decodePlist(data []byte) (values map[string]any, err error) {
	defer func() {
		if recover() != nil {
			values, err = nil, errNoPlist
		}
	}()
	if len(data) == 0 {
		return nil, errNoPlist
	}
	if err := plist.Unmarshal(data, &values); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoPlist, err)
	}
	if values == nil {
		values = map[string]any{}
	}
	return values, nil
}

func encodePlist(values map[string]any) ([]byte, error) {
	data, err := plist.MarshalIndent(values, "\t")
	if err != nil {
		return nil, fmt.Errorf("write a property list: %w", err)
	}
	return data, nil
}

// readPlist reads a file of settings with root's rights, as the daemons do that own them. A missing
// file has no settings.
func (v *visit) readPlist(name string) (map[string]any, error) {
	root := &proc{session: v.session, user: v.session.users()[0], dir: "/"}
	data, err := v.read(root, name)
	if missing(err) {
		return map[string]any{}, nil
	}
	if err != nil {
		return nil, err
	}
	return decodePlist(data)
}

// writePlist writes a file of settings, with its parent folders.
func (v *visit) writePlist(name string, values map[string]any, o owner) error {
	data, err := encodePlist(values)
	if err != nil {
		return err
	}
	root := &proc{session: v.session, user: v.session.users()[0], dir: "/", umask: 0o022}
	n, err := v.resolve(root.user, "/", name, true)
	if err != nil {
		return err
	}
	if n.exists() {
		o = n.owner
	}
	return v.replace(n, data, o)
}

// dict returns the dictionary at a key, or an empty one that is not yet part of values.
func dict(values map[string]any, key string) map[string]any {
	if d, ok := values[key].(map[string]any); ok {
		return d
	}
	return map[string]any{}
}
