package mac

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestKubeletFlags checks that both forms of a flag mean the same, in any order.
func TestKubeletFlags(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		cpu, node, off := rapid.IntRange(1, 64).Draw(t, "cpu"), rapid.StringMatching(`[a-z0-9-]{1,20}`).Draw(t, "node"), rapid.Bool().Draw(t, "off")
		flags := [][]string{{"--host-cpu", strconv.Itoa(cpu)}, {"--node-name=" + node}, {"--disable-vm-gc=" + strconv.FormatBool(off)}}
		if rapid.Bool().Draw(t, "apart") {
			flags[0], flags[1] = []string{"-host-cpu=" + strconv.Itoa(cpu)}, []string{"--node-name", node}
		}
		var args []string
		for _, flag := range rapid.Permutation(flags).Draw(t, "order") {
			args = append(args, flag...)
		}
		set, err := parseKubelet(args, map[string]string{"TART_KUBELET_MAX_PODS": "7"})
		if err != nil {
			t.Fatal(err)
		}
		if set["host-cpu"] != strconv.Itoa(cpu) || set["node-name"] != node || set["disable-vm-gc"] != strconv.FormatBool(off) || set["max-pods"] != "7" {
			t.Fatalf("%q gives %v", args, set)
		}
	})
}

// FuzzKubelet checks that any arguments of a job and any kubeconfig give an error or known flags.
func FuzzKubelet(f *testing.F) {
	f.Add("--node-name\nx\n--frob", goodConfig)
	f.Add("-\n--\n--host-cpu", "users: [")
	f.Fuzz(func(t *testing.T, args, config string) {
		set, err := parseKubelet(strings.Split(args, "\n"), nil)
		var wrong flagFault
		if err == nil && len(set) != len(kubeletFlags()) || err != nil && !errors.As(err, &wrong) && !strings.Contains(err.Error(), "--node-ip-source") {
			t.Errorf("%q: %v, %v", args, set, err)
		}
		if token, err := readKubeconfig([]byte(config)); (err == nil) == (token == "") {
			t.Errorf("%q: %q, %v", config, token, err)
		}
	})
}
