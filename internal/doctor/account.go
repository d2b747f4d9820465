package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/plan"
)

var codeKeyExpires = plan.NewCode("api-key-expires", plan.NotDrift, "the API key expires soon", "create a new API key in the provider's console and use it before the old one expires")

// Untested is a right that can only be tested by a change, so it was not.
const Untested State = "untested"

// soon is how long before its end an API key is reported.
const soon = 14 * 24 * time.Hour

// Right is the result of a request that needs a right and changes nothing.
type Right struct {
	Name string // what the right is for
	Err  error  // why the request failed; nil: it is granted
	Why  string // why no request was sent; empty: one was
}

// AccountSeen is what was read of the provider's account. No host was contacted.
type AccountSeen struct {
	Vendor    fleet.Vendor
	Now       time.Time
	AccessKey string
	Key       inventory.APIKey // as the provider describes it, unless KeyErr is set
	KeyErr    error
	Project   string
	Zones     []string
	Listed    error // why the servers could not be listed
	Servers   []inventory.Server
	Roles     map[string]string // by server id
	Elsewhere *inventory.Account
	Rights    []Right
	Quotas    []inventory.Quota
	QuotasErr error
	Keyring   *plan.Keyring
	// FleetKeyErr says why it is unknown with which key macfleet logs in to hosts; nil: it is known.
	FleetKeyErr error
}

// ServerCount is how many servers of an account are alike.
type ServerCount struct {
	Zone   string `json:"zone"`
	Type   string `json:"type"`
	Status string `json:"status"`
	Role   string `json:"role"` // pool, member of FLEET.GROUP, orphaned member, unmanaged
	Count  int    `json:"count"`
}

// Account is the check list of the provider's account.
type Account struct {
	Project   string        `json:"project_id"`
	Zones     []string      `json:"zones"`
	AccessKey string        `json:"access_key"`
	Healthy   bool          `json:"healthy"` // no check is a problem, a warning or unknown
	Checks    []Check       `json:"checks"`
	Servers   []ServerCount `json:"servers"`
}

// ExamineAccount judges what was read of an account. It is pure.
func ExamineAccount(seen AccountSeen) Account {
	a := accountExam{examination{}, seen}
	a.apiKey()
	a.project()
	for _, r := range seen.Rights {
		a.right(r)
	}
	a.checks = append(a.checks, Check{Name: "other rights", State: Untested,
		Text: "reboot and reinstall servers, register SSH keys: a test would change something; AppleSiliconFullAccess and SSHKeysFullAccess include them"})
	a.quotas()
	a.fleetKeys()
	out := Account{Project: seen.Project, Zones: seen.Zones, AccessKey: seen.AccessKey, Checks: a.checks, Servers: a.count()}
	out.Healthy = !slices.ContainsFunc(out.Checks, func(c Check) bool { return c.State != OK && c.State != Untested })
	return out
}

type accountExam struct {
	examination
	seen AccountSeen
}

// cause is the text of an error without its own fix: the check has one.
func cause(err error) string {
	text, _ := plan.SplitFix(err)
	return text
}

// rejected reports whether the provider rejects the API key itself.
func rejected(err error) bool { return inventory.ClassOf(err) == inventory.Unauthenticated }

func (a *accountExam) apiKey() {
	const name = "API key"
	s := a.seen
	text := s.AccessKey
	for _, err := range []error{s.Listed, s.KeyErr} {
		if rejected(err) {
			a.trouble(name, plan.CodeKeyRejected.Trouble(text+": "+cause(err)))
			return
		}
	}
	if errors.Is(s.KeyErr, inventory.ErrDenied) {
		a.ok(name, "%s; who has it and when it expires is unknown: that needs the permission set IAMReadOnly", text)
		return
	}
	if s.KeyErr != nil {
		a.bad(name, Unknown, "run the command again", "%s: %s", text, s.KeyErr)
		return
	}
	for _, more := range []string{s.Key.Description, s.Key.Bearer} {
		if more != "" {
			text += ", " + more
		}
	}
	left := s.Key.Expires.Sub(s.Now)
	switch {
	case s.Key.Expires.IsZero():
		a.ok(name, "%s, never expires", text)
	case left < soon:
		a.checks = append(a.checks, Check{Name: name, State: Warning, Code: codeKeyExpires, Remedy: codeKeyExpires.Remedy(),
			Text: fmt.Sprintf("%s, expires at %s", text, s.Key.Expires.UTC().Format("2006-01-02 15:04 UTC"))})
	default:
		a.ok(name, "%s, expires on %s", text, s.Key.Expires.UTC().Format(time.DateOnly))
	}
}

func (a *accountExam) project() {
	s := a.seen
	where := fmt.Sprintf("%s, zones %s", s.Project, strings.Join(s.Zones, ", "))
	switch {
	case rejected(s.Listed):
		a.bad("project", Unknown, "", "%s: not checked, because the API key is rejected", where)
	case errors.Is(s.Listed, inventory.ErrDenied):
		a.trouble("project", plan.CodeRightMissing.Trouble(where+": "+cause(s.Listed)))
	case s.Listed != nil:
		a.bad("project", Unknown, "run the command again", "%s: %s", where, s.Listed)
	case len(s.Servers) == 0 && s.Elsewhere != nil && len(s.Elsewhere.Holds) > 0:
		a.trouble("project", plan.CodeWrongProject.Trouble(where+": no servers; "+s.Elsewhere.String()))
	default:
		a.ok("project", "%s: %s", where, count(len(s.Servers), "server"))
	}
}

func (a *accountExam) right(r Right) {
	name := "right to " + r.Name
	switch {
	case r.Why != "":
		a.bad(name, Unknown, "", "not tested: %s", r.Why)
	case r.Err == nil:
		a.ok(name, "granted")
	case rejected(r.Err):
		a.bad(name, Unknown, "", "not tested: the API key is rejected")
	case errors.Is(r.Err, inventory.ErrDenied):
		a.trouble(name, plan.CodeRightMissing.Trouble(cause(r.Err)))
	default:
		a.bad(name, Unknown, "run the command again", "%s", r.Err)
	}
}

func (a *accountExam) quotas() {
	switch s := a.seen; {
	case rejected(s.QuotasErr):
	case errors.Is(s.QuotasErr, inventory.ErrDenied):
		a.checks = append(a.checks, Check{Name: "quota", State: Untested, Text: "not readable with this API key (that needs the permission set IAMReadOnly)"})
	case s.QuotasErr != nil:
		a.bad("quota", Unknown, "run the command again", "%s", s.QuotasErr)
	case len(s.Quotas) == 0:
		a.checks = append(a.checks, Check{Name: "quota", State: Untested, Text: s.Vendor.Name + " names none for Macs"})
	default:
		var all []string
		for _, q := range s.Quotas {
			limit := "unlimited"
			if q.Limit >= 0 {
				limit = fmt.Sprint(q.Limit)
			}
			text := q.Name + " " + limit
			if q.Where != "" {
				text += " in " + q.Where
			}
			all = append(all, text)
		}
		a.ok("quota", "%s", strings.Join(all, ", "))
	}
}

// fleetKeys checks that the project has the keys that macfleet logs in with.
func (a *accountExam) fleetKeys() {
	const name = "fleet's SSH key"
	ring := a.seen.Keyring
	switch {
	case a.seen.FleetKeyErr != nil:
		a.bad(name, Unknown, "check private_key in the ssh block", "%s", a.seen.FleetKeyErr)
		return
	case ring == nil || ring.Registered.IsUnread() && len(ring.Ours) > 0:
		return // the right to list SSH keys says why
	}
	if t := ring.Trouble(); t != nil {
		a.trouble(name, t)
		return
	}
	for i, key := range ring.Ours {
		same := ring.Find(key)
		switch {
		case len(same) > 0:
			a.ok(name, "%s is registered as %q", key.Fingerprint, same[0].Name)
		case i == 0:
			a.trouble(name, plan.KeyNotRegistered(key))
		default:
			a.ok(name, "%s, the previous one, is not registered", key.Fingerprint)
		}
	}
}

// count counts the servers that are alike, by zone, role, type and status.
func (a *accountExam) count() []ServerCount {
	all := make(map[ServerCount]int)
	for _, s := range a.seen.Servers {
		all[ServerCount{Zone: s.Zone, Type: s.Type, Status: s.Status, Role: a.seen.Roles[s.ID]}]++
	}
	out := make([]ServerCount, 0, len(all))
	for c, n := range all {
		c.Count = n
		out = append(out, c)
	}
	slices.SortFunc(out, func(x, y ServerCount) int {
		return cmp.Or(cmp.Compare(x.Zone, y.Zone), cmp.Compare(x.Role, y.Role), cmp.Compare(x.Type, y.Type), cmp.Compare(x.Status, y.Status))
	})
	return out
}
