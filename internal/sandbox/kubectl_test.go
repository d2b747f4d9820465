package sandbox_test

import (
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestKubectl reads and changes a world with a Node by the real kubectl.
func TestKubectl(t *testing.T) {
	t.Parallel()
	program, err := osexec.LookPath("kubectl")
	if err != nil && os.Getenv("CI") != "" {
		t.Fatal("no kubectl: install kubernetes-client")
	} else if err != nil {
		t.Skip("no kubectl")
	}
	p := newPatient(t)
	p.join()
	content, err := p.world.Kubeconfig()
	must(t, err)
	config := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, os.WriteFile(config, content, 0o600))
	for _, test := range []struct {
		command string
		want    []string
	}{
		{"get nodes -o wide", []string{"mini-1 Ready <none> tart-kubelet-v0 " + p.host.Address + " tart"}},
		{"describe node mini-1", []string{"ProviderID: scw-applesilicon://fr-par-1/" + p.host.ID, "HolderIdentity: mini-1", "Ready True TartKubeletReady"}},
		{"get leases -A", []string{"kube-node-lease mini-1 mini-1"}},
		{"get sa -n macfleet", []string{"tart-kubelet-mini-1"}},
		{"get secrets -n macfleet", []string{"tart-kubelet-mini-1-token kubernetes.io/service-account-token 3"}},
		{"describe secret -n macfleet tart-kubelet-mini-1-token", []string{"token: eyJ", "service-account.name: tart-kubelet-mini-1"}},
		{"get clusterrolebindings", []string{"tart-kubelet-mini-1 ClusterRole/tart-kubelet-mini-1"}},
		{"describe clusterrolebinding tart-kubelet-mini-1", []string{"ServiceAccount tart-kubelet-mini-1 macfleet"}},
		{"get configmaps -n kube-public", []string{"cluster-info 1"}},
		{"describe configmap -n kube-public cluster-info", []string{"server: https://"}},
		{"get namespaces", []string{"kube-node-lease Active"}},
		{"label node mini-1 example.org/a=b", []string{"labeled"}},
		{"drain mini-1 --timeout=20s", []string{"drained"}},
		{"get nodes", []string{"Ready,SchedulingDisabled"}},
		{"uncordon mini-1", []string{"uncordoned"}},
		{"get pods -A", []string{"No resources found"}},
	} {
		command := osexec.CommandContext(t.Context(), program, strings.Fields(test.command)...)
		command.Env = []string{"KUBECONFIG=" + config, "HOME=" + filepath.Dir(config)}
		output, err := command.CombinedOutput()
		words := strings.Join(strings.Fields(string(output)), " ")
		for _, want := range test.want {
			if err != nil || !contains(words, want) {
				t.Errorf("kubectl %s: %v, want %q in\n%s", test.command, err, want, output)
			}
		}
	}
}

// contains reports whether text contains the words of want in order, possibly with others between
// them.
func contains(text, want string) bool {
	for word := range strings.FieldsSeq(want) {
		_, after, found := strings.Cut(text, word)
		if !found {
			return false
		}
		text = after
	}
	return true
}
