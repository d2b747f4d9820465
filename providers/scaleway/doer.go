package scaleway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"strings"

	"github.com/macfleet/macfleet/providers/transport"
)

// doer sends the SDK's requests. It answers GET /metadata itself: the SDK asks that once per client, without a context
// and without a lock, only to write its own name into servers. Unanswered, it would hold every call for minutes.
type doer struct{ transport.Patient }

// metadata is what the real API answers.
const metadata = `{"platform":"scaleway","partition":"scw","domain":"scw"}`

// Do sends a request.
func (d doer) Do(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/metadata") {
		return transport.Answer(r, http.Header{"Content-Type": {"application/json"}}, []byte(metadata), http.StatusOK), nil
	}
	return d.Patient.Do(r)
}

// lists are the answers that must have one of these keys: an answer without any would look like an empty list.
var lists = map[string][]string{"servers": {"servers", "total_count"}, "os": {"os", "total_count"},
	"server-types": {"server_types"}, "ssh-keys": {"ssh_keys", "total_count"}}

// judge notes the type of an error answer, and returns an error for a body that must not be decoded. A JSON object
// counts whatever its Content-Type is.
func judge(t *transport.Trail, resp *http.Response, body []byte) error {
	var object map[string]json.RawMessage
	parsed := json.Unmarshal(body, &object) == nil && object != nil
	good := resp.StatusCode >= 200 && resp.StatusCode <= 299
	switch {
	case parsed:
		resp.Header.Set("Content-Type", "application/json")
		if !good {
			_ = json.Unmarshal(object["type"], &t.Kind)
			return nil
		}
	case good && len(body) == 0 && t.Method != http.MethodGet:
		return nil
	case good || resp.StatusCode < 500:
		return &transport.StrangeAnswer{Text: fmt.Sprintf("%s with %d bytes of %q instead of JSON", t.Text, len(body), clipped(resp.Header.Get("Content-Type")))}
	default:
		return nil
	}
	if keys, ok := lists[path.Base(t.Path)]; ok && t.Method == http.MethodGet && !hasOne(object, keys) {
		return &transport.StrangeAnswer{Text: fmt.Sprintf("%s with a JSON object that lacks %q", t.Text, keys[0])}
	}
	return nil
}

func hasOne(object map[string]json.RawMessage, keys []string) bool {
	for _, k := range keys {
		if _, ok := object[k]; ok {
			return true
		}
	}
	return false
}

// clipped returns a text that fits into a line.
func clipped(text string) string { return text[:min(len(text), 80)] }
