package cloud_test

import (
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/internal/sandbox/cloud"
)

func TestFaults(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, cloud.Options{})
	must(t, w.api.Fail(cloud.Fault{Requests: 2, Answer: "429", RetryAfter: "7"}))
	must(t, w.api.Fail(cloud.Fault{Requests: 1, Answer: "503", Only: "GET " + servers + "/"}))
	for range 2 {
		response, body := w.ask(t, "GET", servers, "")
		if response.StatusCode != 429 || response.Header.Get("Retry-After") != "7" || response.Header.Get("X-Ratelimit-Remaining") != "0" || !strings.Contains(body, "too_many_requests") {
			t.Errorf("got %d %v %s", response.StatusCode, response.Header, body)
		}
	}
	if response, _ := w.ask(t, "GET", servers, ""); response.StatusCode != 200 {
		t.Errorf("another request got %d", response.StatusCode)
	}
	one := servers + "/" + serverNumber(0).ID
	if response, body := w.ask(t, "GET", one, ""); response.StatusCode != 503 || response.Header.Get("Content-Type") != "text/html" || !strings.Contains(body, "503") {
		t.Errorf("got %d %s", response.StatusCode, body)
	}
	if response, _ := w.ask(t, "GET", one, ""); response.StatusCode != 200 {
		t.Errorf("after the faults: %d", response.StatusCode)
	}
	if _, err := os.Stat(w.file("faults.json")); !os.IsNotExist(err) {
		t.Errorf("the file of faults is left: %v", err)
	}
}

func TestFaultsAfterTheWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, cloud.Options{})
	one := servers + "/" + serverNumber(0).ID
	send := func(name string) (*http.Response, string, error) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), "PATCH", w.server.URL+one, strings.NewReader(`{"name":"`+name+`"}`))
		must(t, err)
		request.Header.Set("X-Auth-Token", secretKey)
		response, err := w.server.Client().Do(request)
		must(t, err)
		defer func() { _ = response.Body.Close() }()
		data, err := io.ReadAll(response.Body)
		return response, string(data), err
	}
	for answer, check := range map[string]func(*http.Response, string, error) bool{
		"lost": func(r *http.Response, _ string, err error) bool { return r.StatusCode == 502 && err == nil },
		"cut": func(r *http.Response, body string, err error) bool {
			return r.StatusCode == 200 && err != nil && body != ""
		},
		"slow": func(r *http.Response, body string, err error) bool {
			return r.StatusCode == 200 && err == nil && strings.HasSuffix(body, "}")
		},
	} {
		must(t, w.api.Fail(cloud.Fault{Requests: 1, Answer: answer, Pause: "1ms"}))
		if response, body, err := send("named-" + answer); !check(response, body, err) {
			t.Errorf("%s: %d %q %v", answer, response.StatusCode, body, err)
		}
		if _, body := w.ask(t, "GET", one, ""); !strings.Contains(body, "named-"+answer) {
			t.Errorf("%s: the work was not done: %s", answer, body)
		}
	}
}

func TestBadFaults(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, cloud.Options{})
	w.write(t, "faults.json", `[{"requests": 1, "answer": "200"}]`)
	if response, body := w.ask(t, "GET", servers, ""); response.StatusCode != 500 || !strings.Contains(body, "faults.json") {
		t.Errorf("got %d %s", response.StatusCode, body)
	}
}
