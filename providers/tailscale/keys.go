package tailscale

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/internal/secret"
)

// prefix begins the descriptions of macfleet's keys.
const prefix = "macfleet "

// KeyLives is how long a key can be used: a join takes eight seconds.
const KeyLives = 10 * time.Minute

// Key is an auth key with its secret.
type Key struct {
	ID      string
	Secret  secret.Value
	Expires time.Time
}

// key is an auth key as the API shows it.
type key struct {
	ID           string `json:"id"`
	Type         string `json:"keyType"`
	Key          string `json:"key"`
	Description  string `json:"description"`
	Created      moment `json:"created"`
	Expires      moment `json:"expires"`
	Revoked      moment `json:"revoked"`
	Invalid      bool   `json:"invalid"`
	Capabilities struct {
		Devices struct {
			Create create `json:"create"`
		} `json:"devices"`
	} `json:"capabilities"`
}

// create is what devices that join with a key are.
type create struct {
	Reusable      bool     `json:"reusable"`
	Ephemeral     bool     `json:"ephemeral"`
	Preauthorized bool     `json:"preauthorized"`
	Tags          []string `json:"tags"`
}

// Keys returns macfleet's keys that can still be used, by id.
func (c *Client) Keys(ctx context.Context) ([]inventory.DeviceKey, error) {
	var answer struct {
		Keys *[]key `json:"keys"`
	}
	if err := c.ask(ctx, http.MethodGet, "/api/v2/tailnet/-/keys?all=true", nil, &answer); err != nil {
		return nil, fmt.Errorf("list the tailnet's keys: %w", err)
	}
	if answer.Keys == nil {
		return nil, strange("an answer without a list of keys")
	}
	var out []inventory.DeviceKey
	for _, k := range *answer.Keys {
		name, is := strings.CutPrefix(k.Description, prefix)
		dead := k.Invalid || !k.Revoked.IsZero() || !k.Expires.IsZero() && !k.Expires.After(c.options.Now())
		if is && !dead && (k.Type == "" || k.Type == "auth") {
			out = append(out, inventory.DeviceKey{ID: k.ID, For: name, Created: k.Created.Time, Expires: k.Expires.Time})
		}
	}
	slices.SortFunc(out, func(a, b inventory.DeviceKey) int { return cmp.Compare(a.ID, b.ID) })
	return out, nil
}

// Make makes a key with which one machine joins once, approved in advance and not ephemeral, with the configured tags.
func (c *Client) Make(ctx context.Context, host string, lives time.Duration) (Key, error) {
	var body struct {
		Capabilities  any    `json:"capabilities"`
		ExpirySeconds int    `json:"expirySeconds"`
		Description   string `json:"description"`
	}
	body.Capabilities = map[string]any{"devices": map[string]any{"create": create{Preauthorized: true, Tags: append([]string{}, c.options.Tags...)}}}
	body.ExpirySeconds, body.Description = int(lives.Seconds()), prefix+inventory.KeyName(host)
	var answer key
	if err := c.ask(ctx, http.MethodPost, "/api/v2/tailnet/-/keys", body, &answer); err != nil {
		return Key{}, fmt.Errorf("make a key for %s: %w", host, err)
	}
	c.options.Learn(answer.Key)
	text, err := secret.New(answer.Key)
	if err != nil || answer.ID == "" {
		return Key{}, strange("a key that is empty")
	}
	return Key{ID: answer.ID, Secret: text, Expires: answer.Expires.Time}, nil
}

// Revoke ends a key; one that is already gone is revoked.
func (c *Client) Revoke(ctx context.Context, id string) error {
	err := c.ask(ctx, http.MethodDelete, "/api/v2/tailnet/-/keys/"+url.PathEscape(id), nil, nil)
	if err == nil || inventory.ClassOf(err) == inventory.NotFound {
		return nil
	}
	return fmt.Errorf("revoke key %s: %w", id, err)
}
