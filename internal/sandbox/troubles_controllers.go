package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// The job of another scheduler of virtual machines, as its manual sets it up.
const (
	workerLabel   = "org.cirruslabs.orchard.worker"
	workerJob     = "system/" + workerLabel
	workerPlist   = daemonFolder + workerLabel + ".plist"
	workerProgram = "/opt/homebrew/bin/orchard"
)

// The controller that writes to Nodes, the taint that it sets, and the annotation that keeps it off a Node.
const (
	scaler       = "cluster-autoscaler"
	scalerTaint  = "DeletionCandidateOfClusterAutoscaler"
	scalerPaused = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
)

// controllerTroubles are other systems that control a host or its Node.
func controllerTroubles() []trouble {
	return []trouble{
		{
			Incident: Incident{"foreign-job", "a worker of another scheduler starts virtual machines on the host"},
			remember: nothing, cause: startWorker, lasts: workerStarts, cure: stopWorker,
		},
		{
			Incident: Incident{"foreign-field-manager", "another controller of the cluster sets taints on the host's Node"},
			remember: needNode, cause: letScale, lasts: scales, cure: stopScaling,
		},
	}
}

func startWorker(ctx context.Context, v *victim) error {
	machine, err := v.machine()
	if err != nil {
		return err
	}
	arguments := ""
	for _, a := range []string{workerProgram, "worker", "run", "https://orchard.acme.dev:6120"} {
		arguments += "\t\t<string>" + a + "</string>\n"
	}
	if _, err := v.run(ctx, "launchctl enable "+workerJob); err != nil {
		return err
	}
	if err := errors.Join(
		v.put(workerProgram, "macfleet sandbox sample\nprogram=orchard\n", 0o755),
		v.put(workerPlist, fmt.Sprintf(handPlist, workerLabel, arguments), 0o644)); err != nil {
		return err
	}
	return machine.LoadJob(workerPlist)
}

// workerStarts reports whether the job is loaded, or would be at the next boot.
func workerStarts(ctx context.Context, v *victim) (bool, error) {
	said, err := v.run(ctx, `if launchctl print `+workerJob+` >/dev/null 2>&1; then echo loaded; exit; fi
if [ -f `+workerPlist+` ] && ! launchctl print-disabled system | grep -q '"`+workerLabel+`" => \(disabled\|true\)'; then echo boots; fi`)
	return said != "", err
}

func stopWorker(ctx context.Context, v *victim) error {
	machine, err := v.machine()
	if err != nil {
		return err
	}
	if err := machine.UnloadJob(workerJob); err != nil {
		return err
	}
	_, err = v.run(ctx, "launchctl enable "+workerJob+"; rm -f "+workerPlist+" "+workerProgram)
	return err
}

// letScale writes what the controller does: its taint, and the server's record of who wrote the field.
func letScale(_ context.Context, v *victim) error {
	return v.editNode(func(metadata, spec map[string]any) {
		annotations, _ := metadata["annotations"].(map[string]any)
		delete(annotations, scalerPaused)
		spec["taints"] = append(taintsWithout(spec, scalerTaint), map[string]any{"key": scalerTaint, "value": "1772000000", "effect": "PreferNoSchedule"})
		metadata["managedFields"] = append(fieldsWithout(metadata, scaler), map[string]any{
			"manager": scaler, "operation": "Update", "apiVersion": "v1", "time": time.Now().UTC().Format(time.RFC3339),
			"fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:spec": map[string]any{"f:taints": map[string]any{}}},
		})
	})
}

func stopScaling(_ context.Context, v *victim) error {
	return v.editNode(func(metadata, spec map[string]any) {
		spec["taints"] = taintsWithout(spec, scalerTaint)
		metadata["managedFields"] = fieldsWithout(metadata, scaler)
	})
}

// scales reports whether the controller still writes to the Node.
func scales(_ context.Context, v *victim) (bool, error) {
	content, err := v.world.kube.Read(v.node())
	metadata, _ := content["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	all, _ := metadata["managedFields"].([]any)
	return len(fieldsWithout(metadata, scaler)) < len(all) && annotations[scalerPaused] != "true", err
}

// editNode changes the metadata and the spec of the host's Node; it ignores a missing Node.
func (v *victim) editNode(change func(metadata, spec map[string]any)) error {
	return v.world.kube.Edit(v.node(), func(content map[string]any) map[string]any {
		metadata, _ := content["metadata"].(map[string]any)
		spec, _ := content["spec"].(map[string]any)
		if metadata != nil && spec != nil {
			change(metadata, spec)
		}
		return content
	})
}

// fieldsWithout returns the entries of an object's managed fields without those of a manager.
func fieldsWithout(metadata map[string]any, manager string) []any {
	all, _ := metadata["managedFields"].([]any)
	return slices.DeleteFunc(slices.Clone(all), func(one any) bool {
		entry, _ := one.(map[string]any)
		return entry["manager"] == manager
	})
}
