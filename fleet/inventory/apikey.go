package inventory

import "time"

// APIKey is what the provider says about the key that macfleet calls it with. It never has the secret.
type APIKey struct {
	AccessKey      string    `json:"access_key"`
	Description    string    `json:"description,omitempty"`
	Bearer         string    `json:"bearer,omitempty"` // the application or user that it belongs to
	Created        time.Time `json:"created_at"`
	Expires        time.Time `json:"expires_at"` // zero: never
	DefaultProject string    `json:"default_project_id,omitempty"`
}

// Quota is a limit of the account.
type Quota struct {
	Name  string `json:"name"`
	Where string `json:"where,omitempty"` // a zone or region; empty: everywhere
	Limit int64  `json:"limit"`           // negative: unlimited
}
