package tailnet

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// token is an access token.
type token struct {
	Expires time.Time `json:"expires"`
	Scopes  []string  `json:"scopes"`
}

// Client is the id of the world's OAuth client, and of its federated identity.
const Client = "kSandboxCNTRL"

// failure is an error answer.
type failure struct {
	status  int
	message string
}

func (f *failure) Error() string { return fmt.Sprintf("status %d: %s", f.status, f.message) }

// call is one request with the state that it works on.
type call struct {
	*http.Request
	st  *state
	own Settings
	now time.Time
}

// The scopes of the routes.
const (
	devices    = "devices:core"
	deviceList = "devices:core:read"
	keys       = "auth_keys"
	keyList    = "auth_keys:read"
	features   = "feature_settings:read"
	dns        = "dns:read"
)

// routes fills the mux.
func (s *Server) routes() {
	s.route("POST /api/v2/oauth/token", "", s.token)
	s.route("POST /api/v2/oauth/token-exchange", "", s.exchange)
	s.route("GET /api/v2/tailnet/{tailnet}/devices", deviceList, s.listDevices)
	s.route("GET /api/v2/device/{id}", deviceList, func(c *call) (any, *failure) { return s.device(c, func(d *Device) any { return s.shown(*d, c) }) })
	s.route("DELETE /api/v2/device/{id}", devices, s.deleteDevice)
	s.route("POST /api/v2/device/{id}/{part}", devices, s.changeDevice)
	s.route("GET /api/v2/tailnet/{tailnet}/keys", keyList, s.listKeys)
	s.route("POST /api/v2/tailnet/{tailnet}/keys", keys, s.createKey)
	s.route("GET /api/v2/tailnet/{tailnet}/keys/{id}", keyList, s.getKey)
	s.route("DELETE /api/v2/tailnet/{tailnet}/keys/{id}", keys, s.deleteKey)
	s.route("GET /api/v2/tailnet/{tailnet}/settings", features, func(c *call) (any, *failure) {
		return map[string]any{"devicesApprovalOn": c.own.Approval, "devicesKeyDurationDays": 180, "aclsExternallyManagedOn": false}, nil
	})
	s.route("GET /api/v2/tailnet/{tailnet}/dns/preferences", dns, func(c *call) (any, *failure) {
		return map[string]any{"magicDNS": !c.own.NoMagicDNS}, nil
	})
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		write(w, nil, &failure{http.StatusNotImplemented, "the sandbox does not model " + r.Method + " " + r.URL.Path})
	})
}

// ServeHTTP answers one request of the API.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.options.Headscale {
		http.NotFound(w, r)
		return
	}
	s.mux.ServeHTTP(w, r)
}

// route adds a route that needs a scope; "" is one without a token.
func (s *Server) route(pattern, scope string, serve func(*call) (any, *failure)) {
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		var out any
		var failed *failure
		err := s.change(func(st *state, own Settings, now time.Time) error {
			c := &call{r, st, own, now}
			if own.Down != 0 {
				failed = &failure{own.Down, ""}
				return nil
			}
			if failed = c.allowed(scope); failed == nil {
				out, failed = serve(c)
			}
			return nil
		})
		if err != nil {
			failed = &failure{http.StatusInternalServerError, err.Error()}
		}
		write(w, out, failed)
	})
}

// write writes an answer. An outage of the servers in front of the API has a page instead of JSON.
func write(w http.ResponseWriter, out any, failed *failure) {
	if failed != nil && failed.message == "" {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(failed.status)
		_, _ = fmt.Fprintf(w, "<html><head><title>%d</title></head><body>%s</body></html>", failed.status, http.StatusText(failed.status))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if failed != nil {
		w.WriteHeader(failed.status)
		out = map[string]string{"message": failed.message}
	}
	_ = json.NewEncoder(w).Encode(out) // a disconnected client is ignored
}

// allowed checks the token of a request.
func (c *call) allowed(scope string) *failure {
	if scope == "" {
		return nil
	}
	bearer, ok := strings.CutPrefix(c.Header.Get("Authorization"), "Bearer ")
	t, known := c.st.Tokens[digest(bearer)]
	switch {
	case !ok || !known || !t.Expires.After(c.now) || c.own.Revoked:
		return &failure{http.StatusUnauthorized, "API token invalid"}
	case slices.Contains(t.Scopes, scope), slices.Contains(t.Scopes, "all"), slices.Contains(t.Scopes, strings.TrimSuffix(scope, ":read")),
		slices.Contains(t.Scopes, "all:read") && strings.HasSuffix(scope, ":read"):
		return nil
	}
	return &failure{http.StatusForbidden, "calling actor does not have enough permissions to perform this function"}
}

func (s *Server) issue(c *call) (any, *failure) {
	scopes := c.own.Scopes
	if len(scopes) == 0 {
		scopes = []string{devices, keys, "feature_settings:read", "dns:read"}
	}
	for k, t := range c.st.Tokens {
		if !t.Expires.After(c.now) {
			delete(c.st.Tokens, k)
		}
	}
	text := "tskey-api-" + random(12) + "-" + random(24)
	c.st.Tokens[digest(text)] = token{c.now.Add(time.Hour), scopes}
	return map[string]any{"access_token": text, "token_type": "Bearer", "expires_in": 3600, "scope": strings.Join(scopes, " ")}, nil
}

// token answers an OAuth client. Its id is optional: the secret names it.
func (s *Server) token(c *call) (any, *failure) {
	secret := c.PostFormValue("client_secret")
	if _, basic, ok := c.BasicAuth(); ok {
		secret = basic
	}
	if !strings.HasPrefix(secret, "tskey-client-"+Client+"-") || c.own.Revoked {
		return nil, &failure{http.StatusUnauthorized, "API token invalid"}
	}
	return s.issue(c)
}

// exchange answers a federated identity.
func (s *Server) exchange(c *call) (any, *failure) {
	if c.PostFormValue("client_id") != Client || strings.Count(c.PostFormValue("jwt"), ".") != 2 || c.own.Revoked {
		return nil, &failure{http.StatusForbidden, "the token does not match the federated identity"}
	}
	return s.issue(c)
}

func random(n int) string { return rand.Text()[:min(n, 26)] }

// shown is a device as the API shows it.
func (s *Server) shown(d Device, c *call) any {
	connected := d.Connected && (d.Server == "" || s.options.Runs(d.Server))
	out := map[string]any{"id": strings.TrimSuffix(strings.TrimPrefix(d.ID, "nSandbox"), "CNTRL"), "nodeId": d.ID, "name": d.Name + "." + d.in(c.own), "hostname": d.HostName, "addresses": d.Addresses,
		"authorized": d.Approved, "clientVersion": d.Version, "connectedToControl": connected, "created": d.Created.UTC().Format(time.RFC3339),
		"keyExpiryDisabled": d.NeverKey, "nodeKey": d.NodeKey, "os": d.OS, "isExternal": false, "isEphemeral": d.Ephemeral, "user": "ops@acme.dev",
		"multipleConnections": d.Second != "", "expires": d.Expires.UTC().Format(time.RFC3339)}
	if len(d.Tags) > 0 {
		out["tags"] = d.Tags
	}
	if !connected {
		out["lastSeen"] = d.Seen.UTC().Format(time.RFC3339)
	}
	return out
}

func (s *Server) listDevices(c *call) (any, *failure) {
	all := []any{}
	for _, d := range c.st.Devices {
		if d.in(c.own) == c.own.listed() {
			all = append(all, s.shown(d, c))
		}
	}
	return map[string]any{"devices": all}, nil
}

// device finds the device of a request.
func (s *Server) device(c *call, use func(*Device) any) (any, *failure) {
	for i := range c.st.Devices {
		if d := &c.st.Devices[i]; d.ID == c.PathValue("id") && d.in(c.own) == c.own.listed() {
			return use(d), nil
		}
	}
	return nil, &failure{http.StatusNotFound, "no manageable device matching " + c.PathValue("id") + " found"}
}

func (s *Server) deleteDevice(c *call) (any, *failure) {
	out, failed := s.device(c, func(*Device) any { return struct{}{} })
	if failed == nil {
		c.st.Devices = slices.DeleteFunc(c.st.Devices, func(d Device) bool { return d.ID == c.PathValue("id") })
	}
	return out, failed
}

func (s *Server) changeDevice(c *call) (any, *failure) {
	var body struct {
		Tags       []string `json:"tags"`
		Name       string   `json:"name"`
		Authorized *bool    `json:"authorized"`
		NeverKey   *bool    `json:"keyExpiryDisabled"`
	}
	if part := c.PathValue("part"); part != "expire" {
		if failed := read(c.Request, &body); failed != nil {
			return nil, failed
		}
	}
	var failed *failure
	out, missing := s.device(c, func(d *Device) any {
		switch c.PathValue("part") {
		case "tags":
			if failed = c.permitted(body.Tags); failed == nil {
				d.Tags = slices.Sorted(slices.Values(body.Tags))
			}
		case "name":
			name := strings.TrimSuffix(body.Name, "."+d.in(c.own))
			if failed = c.named(name, d.ID); failed == nil {
				d.Name = name
			}
		case "authorized":
			d.Approved = body.Authorized != nil && *body.Authorized
		case "key":
			d.NeverKey = body.NeverKey != nil && *body.NeverKey
		case "expire":
			d.Expires, d.NeverKey = c.now, false
		default:
			failed = &failure{http.StatusNotImplemented, "the sandbox does not model " + c.URL.Path}
		}
		return struct{}{}
	})
	return out, cmp.Or(missing, failed)
}

// named checks a new name of a device.
func (c *call) named(name, id string) *failure {
	if slices.ContainsFunc(c.st.Devices, func(d Device) bool {
		return d.ID != id && strings.EqualFold(d.Name, name) && d.in(c.own) == c.own.listed()
	}) {
		return &failure{http.StatusBadRequest, "name already in use"}
	}
	if name == "" || strings.ContainsAny(name, "._ ") {
		return &failure{http.StatusBadRequest, "invalid device name"}
	}
	return nil
}

// permitted checks tags: they are all of the credential's, or each is owned by one of the credential's.
func (c *call) permitted(tags []string) *failure {
	have := c.own.ClientTags
	if len(have) == 0 || slices.Equal(slices.Sorted(slices.Values(tags)), slices.Sorted(slices.Values(have))) {
		return nil
	}
	var bad []string
	for _, t := range tags {
		if !slices.ContainsFunc(c.own.TagOwners[t], func(owner string) bool { return slices.Contains(have, owner) }) {
			bad = append(bad, t)
		}
	}
	if len(bad) > 0 {
		return &failure{http.StatusBadRequest, "requested tags [" + strings.Join(bad, " ") + "] are invalid or not permitted"}
	}
	return nil
}

// shownKey is a key as the API shows it.
func shownKey(k Key, now time.Time) map[string]any {
	out := map[string]any{"id": k.ID, "keyType": "auth", "description": k.Description, "created": k.Created.UTC().Format(time.RFC3339),
		"expires": k.Expires.UTC().Format(time.RFC3339), "expirySeconds": int(k.Expires.Sub(k.Created).Seconds()),
		"capabilities": map[string]any{"devices": map[string]any{"create": map[string]any{"reusable": k.Reusable, "ephemeral": k.Ephemeral,
			"preauthorized": k.Preauthorized, "tags": k.Tags}}}}
	if !k.Alive(now) {
		out["invalid"] = true
	}
	if !k.Revoked.IsZero() {
		out["revoked"] = k.Revoked.UTC().Format(time.RFC3339)
	}
	return out
}

// listKeys lists auth keys only with all=true: otherwise a token of an OAuth client gets the clients. Keys that cannot be
// used are not listed.
func (s *Server) listKeys(c *call) (any, *failure) {
	if c.own.NoKeyList {
		return nil, &failure{http.StatusForbidden, "calling actor does not have enough permissions to perform this function"}
	}
	all := []any{}
	if c.URL.Query().Get("all") == "true" {
		for _, k := range c.st.Keys {
			if k.Alive(c.now) && cmp.Or(k.Suffix, c.own.Suffix) == c.own.listed() {
				all = append(all, shownKey(k, c.now))
			}
		}
	}
	all = append(all, map[string]any{"id": Client, "keyType": "client", "description": "macfleet"})
	return map[string]any{"keys": all}, nil
}

// description is what the API accepts as one.
var description = regexp.MustCompile(`^[A-Za-z0-9 -]{0,50}$`)

func (s *Server) createKey(c *call) (any, *failure) {
	var body struct {
		Capabilities *struct {
			Devices struct {
				Create struct {
					Reusable, Ephemeral, Preauthorized bool
					Tags                               []string
				}
			}
		}
		ExpirySeconds *int
		Description   string
	}
	if failed := read(c.Request, &body); failed != nil {
		return nil, failed
	}
	if body.Capabilities == nil {
		return nil, &failure{http.StatusBadRequest, "capabilities is required"}
	}
	if !description.MatchString(body.Description) {
		return nil, &failure{http.StatusBadRequest, "description must be at most 50 characters: letters, digits, hyphens and spaces"}
	}
	create := body.Capabilities.Devices.Create
	if len(create.Tags) == 0 {
		return nil, &failure{http.StatusBadRequest, "tags are required for keys of an OAuth client"}
	}
	if failed := c.permitted(create.Tags); failed != nil {
		return nil, failed
	}
	lives := 90 * 24 * time.Hour
	if body.ExpirySeconds != nil && *body.ExpirySeconds > 0 {
		lives = time.Duration(*body.ExpirySeconds) * time.Second
	}
	k, secret := c.st.newKey("tskey-auth-", c.now)
	k.Description, k.Tags, k.Expires = body.Description, create.Tags, c.now.Add(lives)
	k.Reusable, k.Ephemeral, k.Preauthorized = create.Reusable, create.Ephemeral, create.Preauthorized
	k.Suffix = c.own.ClientOf
	c.st.Keys = append(c.st.Keys, k)
	out := shownKey(k, c.now)
	out["key"] = secret
	return out, nil
}

// newKey returns a key and its secret.
func (st *state) newKey(prefix string, now time.Time) (Key, string) {
	st.Next++
	k := Key{ID: fmt.Sprintf("kAuth%dCNTRL", st.Next), Created: now}
	secret := prefix + k.ID + "-" + random(26)
	k.Digest = digest(secret)
	return k, secret
}

func (s *Server) getKey(c *call) (any, *failure) {
	for _, k := range c.st.Keys {
		if k.ID == c.PathValue("id") {
			return shownKey(k, c.now), nil
		}
	}
	return nil, &failure{http.StatusNotFound, "key not found"}
}

func (s *Server) deleteKey(c *call) (any, *failure) {
	for i := range c.st.Keys {
		if k := &c.st.Keys[i]; k.ID == c.PathValue("id") {
			if k.Revoked.IsZero() {
				k.Revoked = c.now
			}
			return struct{}{}, nil
		}
	}
	return nil, &failure{http.StatusNotFound, "key not found"}
}

// KeyByHand makes an auth key as a person does in the admin console, or with headscale preauthkeys create.
func (s *Server) KeyByHand(reusable bool, lives time.Duration, tags ...string) (secret string, err error) {
	err = s.change(func(st *state, _ Settings, now time.Time) error {
		prefix := "tskey-auth-"
		if s.options.Headscale {
			prefix = "hskey-auth-"
		}
		var k Key
		k, secret = st.newKey(prefix, now)
		k.Tags, k.Reusable, k.Preauthorized, k.Expires = tags, reusable, true, now.Add(lives)
		st.Keys = append(st.Keys, k)
		return nil
	})
	return secret, err
}

// Secret is that of the world's OAuth client.
const Secret = "tskey-client-" + Client + "-S4ndb0xS4ndb0xS4ndb0x"
