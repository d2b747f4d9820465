package kubernetes

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/macfleet/macfleet/fleet/inventory"
)

// TestOutOfTime keeps the words by which client-go says that it did not ask: a
// drain whose time is up must name the disruption budget and not these.
func TestOutOfTime(t *testing.T) {
	t.Parallel()
	limit := flowcontrol.NewTokenBucketRateLimiter(0.001, 1)
	limit.Accept()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := limit.Wait(ctx); !outOfTime(err) {
		t.Errorf("%v is not known", err)
	}
	if outOfTime(nil) || outOfTime(errors.New("connection refused")) {
		t.Error("another error counts")
	}
}

// TestFinalizerPatch: where another finalizer has taken the place meanwhile, the patch fails.
func TestFinalizerPatch(t *testing.T) {
	t.Parallel()
	patch, err := withoutFinalizers(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Finalizers: []string{inventory.VMFinalizer}}})
	if want := `{"op":"test","path":"/metadata/finalizers/0","value":"` + inventory.VMFinalizer; err != nil || !strings.Contains(string(patch), want) {
		t.Errorf("%s, %v", patch, err)
	}
}
