package cloud_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox/cloud"
)

const servers = "/apple-silicon/v1alpha1/zones/" + zone + "/servers"

// ask sends one request and returns the answer and its body.
func (w *world) ask(t *testing.T, method, path, body string) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, w.server.URL+path, strings.NewReader(body))
	must(t, err)
	request.Header.Set("X-Auth-Token", secretKey)
	response, err := w.server.Client().Do(request)
	must(t, err)
	data, err := io.ReadAll(response.Body)
	must(t, response.Body.Close())
	must(t, err)
	return response, string(data)
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2, cloud.Options{})
	one := servers + "/" + serverNumber(0).ID
	for _, test := range []struct {
		method, path, body string
		status             int
		contains           string
	}{
		{"GET", servers + "?page=99", "", 200, `{"total_count":1,"servers":[]}`},
		{"GET", servers + "?page=0", "", 400, "invalid_arguments"},
		{"GET", servers + "?page_size=x", "", 400, "page_size"},
		{"GET", servers + "?order_by=name", "", 400, "order_by"},
		{"GET", servers, "", 200, `"sudo_password":"<sealed>"`},
		{"GET", one, "", 200, `"runner_configuration":null`},
		{"GET", servers + "/..%2F..%2Fsecrets", "", 400, "not a UUID"},
		{"PATCH", one, `{"tags":["x"]}`, 400, `"reason":"unknown"`},
		{"PATCH", one, `{"name":""}`, 400, `"reason":"required"`},
		{"PATCH", one, `{"name":7}`, 400, `"reason":"format"`},
		{"PATCH", one, `no JSON`, 400, "invalid_arguments"},
		{"PATCH", one, `{}`, 200, `"name":"acme-pool-000"`},
		{"PATCH", one, `{"enable_vpc":true,"public_bandwidth_bps":5,"applied_runner_configurations":{"runner_configuration_ids":["a"]}}`, 200, `"vpc_status":"vpc_enabled"`},
		{"POST", one + "/reinstall", `{"os":"x"}`, 400, `"reason":"unknown"`},
		{"POST", one + "/reinstall", `{"os_id":7}`, 400, `"reason":"format"`},
		{"POST", one + "/reinstall", `{"os_id":"x"}`, 400, `"reason":"constraint"`},
		{"POST", one + "/clone", `{}`, 501, `"message":"the sandbox does not model POST`},
		{"GET", "/metadata", "", 200, `"domain":"scw"`},
	} {
		response, body := w.ask(t, test.method, test.path, test.body)
		if response.StatusCode != test.status || !strings.Contains(body, test.contains) {
			t.Errorf("%s %s %s: got %d %s, want %d with %s", test.method, test.path, test.body, response.StatusCode, body, test.status, test.contains)
		}
		if !json.Valid([]byte(body)) {
			t.Errorf("%s %s: no JSON: %s", test.method, test.path, body)
		}
		for _, name := range []string{"X-Request-Id", "Server", "X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"} {
			if response.Header.Get(name) == "" {
				t.Errorf("%s %s: no header %s", test.method, test.path, name)
			}
		}
		if kind := response.Header.Get("Content-Type"); kind != "application/json" {
			t.Errorf("%s %s: content type %q", test.method, test.path, kind)
		}
	}
}

func TestRateLimit(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	w := newWorld(t, 1, cloud.Options{RequestsPerSecond: 50, Now: func() time.Time { return now }})
	for range 50 {
		if response, body := w.ask(t, "GET", servers, ""); response.StatusCode != 200 {
			t.Fatalf("within the limit: %d %s", response.StatusCode, body)
		}
	}
	response, body := w.ask(t, "GET", servers, "")
	if response.StatusCode != 429 || !strings.Contains(body, `"type":"too_many_requests"`) ||
		response.Header.Get("X-Ratelimit-Reset") != "1" || response.Header.Get("X-Ratelimit-Limit") != "50, 50;w=1" {
		t.Errorf("over the limit: %d %v %s", response.StatusCode, response.Header, body)
	}
	now = now.Add(time.Second)
	if response, _ := w.ask(t, "GET", servers, ""); response.StatusCode != 200 || response.Header.Get("X-Ratelimit-Remaining") != "49" {
		t.Errorf("a second later: %d %v", response.StatusCode, response.Header)
	}
}

func TestEditedByHand(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3, cloud.Options{})
	path := filepath.Join(w.dir, "servers", serverNumber(0).ID+".json")
	whole, err := os.ReadFile(path)
	must(t, err)
	edited := strings.Replace(string(whole), "acme-pool-000", "acme-by-hand", 1)
	must(t, os.WriteFile(path, []byte(edited), 0o600))
	if _, body := w.ask(t, "GET", servers, ""); !strings.Contains(body, "acme-by-hand") {
		t.Errorf("an edit of the file has no effect: %s", body)
	}
	for name, broken := range map[string]string{
		"cut off":       edited[:len(edited)/2],
		"unknown field": strings.Replace(edited, `"name"`, `"nmae"`, 1),
		"wrong type":    strings.Replace(edited, `"delivered": true`, `"delivered": "yes"`, 1),
		"other id":      strings.Replace(edited, serverNumber(0).ID, serverNumber(1).ID, 1),
		"no address":    strings.Replace(edited, `"198.51.100.1",`, `"",`, 1),
		"two objects":   edited + edited,
	} {
		must(t, os.WriteFile(path, []byte(broken), 0o600))
		for _, route := range []string{servers, servers + "/" + serverNumber(0).ID} {
			response, body := w.ask(t, "GET", route, "")
			if response.StatusCode != 500 || !strings.Contains(body, path) || !strings.Contains(body, `"type":"internal"`) {
				t.Errorf("%s: got %d %s, want 500 that names %s", name, response.StatusCode, body, path)
			}
		}
	}
	must(t, os.WriteFile(path, whole, 0o600))
	if response, _ := w.ask(t, "GET", servers, ""); response.StatusCode != 200 {
		t.Errorf("after the repair: %d", response.StatusCode)
	}
}

func TestFolderBelowAFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	if _, err := cloud.New(filepath.Join(file, "state"), cloud.Options{}); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("got %v, want an error that names %s", err, file)
	}
	w := newWorld(t, 1, cloud.Options{})
	must(t, os.RemoveAll(filepath.Join(w.dir, "servers")))
	if response, body := w.ask(t, "GET", servers, ""); response.StatusCode != 500 {
		t.Errorf("without the folder: %d %s", response.StatusCode, body)
	}
}
