package plan

import (
	"fmt"
	"reflect"
	"strings"
)

// Decisions are what a person decided for one run, beyond the configuration. A plan carries those that it was made with, so that a
// plan file keeps them. Each JSON key is the name of the flag.
type Decisions struct {
	Rollback       bool     `json:"rollback,omitempty"`           // artifacts go back to the previous version
	NewTokens      bool     `json:"rotate_tokens,omitempty"`      // hosts get new tokens, and their old ones end
	AdoptOnly      bool     `json:"adopt_only,omitempty"`         // only markers and host keys of adopted servers, and sudo, which a marker needs
	AllowOrphans   bool     `json:"allow_orphans,omitempty"`      // servers are claimed although there are orphaned members
	ReleaseSurplus int      `json:"release_surplus,omitempty"`    // how many hosts leave groups that have too many although replicas was not lowered
	AcceptLists    []string `json:"accept_list,omitempty"`        // names of lists that count although they lack what hosts say of themselves
	MovedFrom      string   `json:"moved_from_cluster,omitempty"` // uid of the cluster from which hosts are moved to this one
}

// Flags returns the decisions as they are typed on the command line, such as --release-surplus 2.
func (d Decisions) Flags() (out []string) {
	for field, value := range reflect.ValueOf(d).Fields() {
		key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		flag := "--" + strings.ReplaceAll(key, "_", "-")
		switch given := value.Interface().(type) {
		case []string:
			for _, one := range given {
				out = append(out, flag+" "+one)
			}
		case bool:
			if given {
				out = append(out, flag)
			}
		default:
			if !value.IsZero() {
				out = append(out, fmt.Sprint(flag, " ", given))
			}
		}
	}
	return out
}
