package cloud

import (
	"net/http"
	"slices"
	"time"
)

// apiKey is what the API says about a key of the account. It never shows the secret.
type apiKey struct {
	AccessKey        string     `json:"access_key"`
	SecretKey        *string    `json:"secret_key"`
	ApplicationID    string     `json:"application_id"`
	Description      string     `json:"description"`
	CreatedAt        time.Time  `json:"created_at"`
	UpdatedAt        time.Time  `json:"updated_at"`
	ExpiresAt        *time.Time `json:"expires_at"`
	DefaultProjectID string     `json:"default_project_id"`
	Editable         bool       `json:"editable"`
	Deletable        bool       `json:"deletable"`
	Managed          bool       `json:"managed"`
	CreationIP       string     `json:"creation_ip"`
}

// mayReadAccount answers a request about the account if the key may not read it: the permission sets of
// a fleet's key do not include that.
func (a *API) mayReadAccount(resource string) (rights, *failure) {
	own, failed := a.lacking()
	if failed == nil && own.Account == "denied" {
		failed = deniedFor(resource, "read")
	}
	return own, failed
}

func (a *API) getAPIKey(r *http.Request) (any, *failure) {
	own, failed := a.mayReadAccount("api_key")
	if failed != nil {
		return nil, failed
	}
	settings, failed := a.settings()
	if failed != nil {
		return nil, failed
	}
	name := r.PathValue("key")
	if name != a.options.AccessKey {
		return nil, notFound("api_key", name)
	}
	created := time.Date(2026, time.March, 1, 8, 0, 0, 0, time.UTC)
	return apiKey{
		AccessKey: name, ApplicationID: derivedUUID("application"), Description: "macfleet", CreatedAt: created, UpdatedAt: created,
		ExpiresAt: settings.KeyExpires, DefaultProjectID: a.project(own), Editable: true, Deletable: true, CreationIP: "192.0.2.10",
	}, nil
}

// serversQuota is the name of the quota of servers.
const serversQuota = "apple_silicon_servers"

type quotum struct {
	Name         string       `json:"name"`
	Limit        *int         `json:"limit,omitempty"`
	Unlimited    *bool        `json:"unlimited,omitempty"`
	PrettyName   string       `json:"pretty_name"`
	Unit         string       `json:"unit"`
	Description  string       `json:"description"`
	LocalityType string       `json:"locality_type"`
	Limits       []quotaLimit `json:"limits"`
}

type quotaLimit struct {
	Global    bool  `json:"global"`
	Limit     *int  `json:"limit,omitempty"`
	Unlimited *bool `json:"unlimited,omitempty"`
}

func (a *API) listQuota(r *http.Request) (any, *failure) {
	if _, failed := a.mayReadAccount("quota"); failed != nil {
		return nil, failed
	}
	query := r.URL.Query()
	if organization := query.Get("organization_id"); organization != a.options.OrganizationID {
		return nil, deniedFor("quota", "list")
	}
	own, failed := a.settings()
	if failed != nil {
		return nil, failed
	}
	all := []quotum{}
	if names := query["quotum_names"]; len(names) == 0 || slices.Contains(names, serversQuota) {
		all = append(all, own.quotum())
	}
	shown, failed := page(all, query)
	if failed != nil {
		return nil, failed
	}
	return map[string]any{"quota": shown, "total_count": len(all)}, nil
}

func (s Settings) quotum() quotum {
	q := quotum{Name: serversQuota, PrettyName: "Apple silicon servers", Unit: "servers", LocalityType: "global"}
	if s.Quota > 0 {
		q.Limit = &s.Quota
	} else {
		unlimited := true
		q.Unlimited = &unlimited
	}
	q.Limits = []quotaLimit{{Global: true, Limit: q.Limit, Unlimited: q.Unlimited}}
	return q
}
