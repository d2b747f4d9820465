package cloud

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/macfleet/macfleet/internal/sandbox/store"
)

// rights are what the key lacks. The file is made by a person; without it the key may do everything.
type rights struct {
	// Update says what of changing servers the key may not do: "denied" is everything, "name-denied"
	// only another name, as when the right is taken away between two requests.
	Update string `json:"update"`
}

// refused says what becomes of an update for want of a right, before anything is changed.
func (a *API) refused(fields map[string]json.RawMessage) *failure {
	var own rights
	if err := store.ReadJSON(a.rights, &own); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return internal(err)
	}
	_, named := fields["name"]
	switch {
	case own.Update == "denied", own.Update == "name-denied" && named:
		return denied("write")
	case own.Update != "" && own.Update != "name-denied":
		return internal(fmt.Errorf("%s: update is %q; it can be denied or name-denied", a.rights, own.Update))
	}
	return nil
}
