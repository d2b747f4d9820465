package kubernetes_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/providers/kubernetes"
)

// TestExpiredList asks for the whole list where the server has forgotten the place in it, which it does
// five minutes after the first page, or sooner when etcd is compacted. Nothing of the first try is left in it.
func TestExpiredList(t *testing.T) {
	t.Parallel()
	const expired = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410,"message":"The provided continue parameter is too old"}`
	node := func(name string) string { return `{"metadata":{"name":"` + name + `","uid":"` + name + `"}}` }
	for what, whole := range map[string]bool{"once": true, "always": false} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			client := serve(t, kubernetes.Options{}, func(w http.ResponseWriter, r *http.Request) {
				q := r.URL.Query()
				items, more := "", ""
				switch {
				case !strings.HasSuffix(r.URL.Path, "/nodes"):
				case q.Get("continue") != "", q.Get("limit") == "" && !whole:
					w.WriteHeader(http.StatusGone)
					_, _ = w.Write([]byte(expired))
					return
				case q.Get("limit") == "":
					items = node("b") + "," + node("c")
				default:
					items, more = node("a")+","+node("b"), "place"
				}
				_, _ = fmt.Fprintf(w, `{"kind":"NodeList","apiVersion":"v1","metadata":{"continue":%q},"items":[%s]}`, more, items)
			})
			nodes, err := client.Nodes(t.Context())
			if !whole {
				if err == nil || !strings.Contains(err.Error(), "too old") {
					t.Errorf("nodes %+v, %v", nodes, err)
				}
				return
			}
			if err != nil || len(nodes) != 2 || nodes[0].Name != "b" || nodes[1].Name != "c" {
				t.Errorf("nodes %+v, %v", nodes, err)
			}
		})
	}
}
