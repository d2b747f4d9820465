package kubernetes

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/drain"
)

// drained is an API server in memory with the Pods of one Node. It has the DaemonSet "there", says
// nothing of "hidden", and has no other.
type drained struct{ pods []corev1.Pod }

func (d drained) RoundTrip(r *http.Request) (*http.Response, error) {
	set := schema.GroupResource{Group: "apps", Resource: "daemonsets"}
	var answer any
	code := http.StatusOK
	switch name := path.Base(r.URL.Path); {
	case name == "pods" && r.URL.Query().Get("fieldSelector") == "spec.nodeName=mac":
		answer = corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, Items: d.pods}
	case name == "there":
		answer = map[string]any{"kind": "DaemonSet", "apiVersion": "apps/v1"}
	case name == "hidden":
		code, answer = http.StatusForbidden, apierrors.NewForbidden(set, name, nil).ErrStatus
	case name == "gone":
		code, answer = http.StatusNotFound, apierrors.NewNotFound(set, name).ErrStatus
	default:
		return nil, fmt.Errorf("unexpected request: %s", r.URL)
	}
	text, err := json.Marshal(answer)
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(text)), Request: r}, err
}

func (d drained) client(t *testing.T) *Client {
	t.Helper()
	api, err := kubernetes.NewForConfig(&rest.Config{Host: "https://acme.test", Transport: d, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return &Client{api: api}
}

// TestEvictsAsKubectl compares the choice of Pods with that of kubectl drain, for Pods of all kinds. Only a
// deleted Pod that has finished is left out besides.
func TestEvictsAsKubectl(t *testing.T) {
	t.Parallel()
	var all drained
	owner := func(version, kind, name string, controls bool) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: name, UID: "u-1", Controller: &controls}}
	}
	for who, owners := range map[string][]metav1.OwnerReference{
		"alone": nil, "kept": owner("apps/v1", "ReplicaSet", "web", true), "owned": owner("apps/v1", "ReplicaSet", "web", false),
		"daemon": owner("apps/v1", "DaemonSet", "there", true), "orphan": owner("apps/v1", "DaemonSet", "gone", true),
		"unread": owner("apps/v1", "DaemonSet", "hidden", true), "old": owner("extensions/v1beta1", "DaemonSet", "there", true),
	} {
		for _, phase := range []corev1.PodPhase{corev1.PodPending, corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed, corev1.PodUnknown} {
			for bits := range 8 {
				p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: strings.ToLower(fmt.Sprint(who, "-", phase, "-", bits)), OwnerReferences: owners}}
				p.Status.Phase = phase
				if bits&1 != 0 {
					p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
				}
				if bits&2 != 0 {
					p.DeletionTimestamp = &metav1.Time{Time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
				}
				if bits&4 != 0 {
					p.Spec.Volumes = []corev1.Volume{{Name: "work", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
				}
				all.pods = append(all.pods, p)
			}
		}
	}
	evicted, refused := 0, 0
	check := func(d drained, unmanaged bool) {
		t.Helper()
		c := d.client(t)
		helper := drain.Helper{Ctx: t.Context(), Client: c.api, Force: unmanaged, GracePeriodSeconds: -1, IgnoreAllDaemonSets: true, DeleteEmptyDirData: true,
			Out: io.Discard, ErrOut: io.Discard, DryRunStrategy: util.DryRunNone}
		var want, got []string
		list, errs := helper.GetPodsForDeletion("mac")
		if len(errs) == 0 {
			for _, p := range list.Pods() {
				if p.DeletionTimestamp == nil || p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
					want = append(want, p.Name)
				}
			}
		}
		pods, err := c.toEvict(t.Context(), "mac", unmanaged)
		for _, p := range pods {
			got = append(got, p.Name)
		}
		if !slices.Equal(got, want) || (err != nil) != (len(errs) > 0) {
			t.Errorf("%s and %d more, unmanaged %v: evicts %v (%v), kubectl %v (%v)", d.pods[0].Name, len(d.pods)-1, unmanaged, got, err, want, errs)
		}
		evicted += len(got)
		if err != nil {
			refused++
		}
	}
	for _, unmanaged := range []bool{false, true} {
		for _, p := range all.pods {
			check(drained{[]corev1.Pod{p}}, unmanaged)
		}
		check(all, unmanaged) // one that must not go keeps all
		check(drained{slices.DeleteFunc(slices.Clone(all.pods), func(p corev1.Pod) bool {
			return strings.HasPrefix(p.Name, "unread") || !unmanaged && (strings.HasPrefix(p.Name, "alone") || strings.HasPrefix(p.Name, "owned") || strings.HasPrefix(p.Name, "orphan"))
		})}, unmanaged)
	}
	if evicted == 0 || refused == 0 {
		t.Errorf("%d Pods evicted, %d lists refused: the comparison says nothing", evicted, refused)
	}
	_, err := drained{[]corev1.Pod{all.pods[0]}}.client(t).toEvict(t.Context(), "other", false)
	if err == nil {
		t.Error("the Pods of another Node were listed")
	}
}

// TestEvictNames names every Pod that keeps a Node from being drained.
func TestEvictNames(t *testing.T) {
	t.Parallel()
	var pods []corev1.Pod
	for _, name := range []string{"one", "two"} {
		pods = append(pods, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: name}})
	}
	_, err := drained{pods}.client(t).toEvict(t.Context(), "mac", false)
	if err == nil || !strings.HasSuffix(err.Error(), ": acme/one, acme/two") {
		t.Errorf("got %v", err)
	}
}
