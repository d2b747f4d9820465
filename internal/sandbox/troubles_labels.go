package sandbox

import (
	"context"
	"maps"
	"slices"
	"strings"
)

// strangerLabel is the value that someone writes over a label of the host's kubelet.
const strangerLabel = "macfleet-sandbox-stranger"

// nodeLabels returns the labels of the host's Node.
func (v *victim) nodeLabels() (map[string]any, error) {
	content, err := v.world.kube.Read(v.node())
	metadata, _ := content["metadata"].(map[string]any)
	labels, _ := metadata["labels"].(map[string]any)
	return labels, err
}

// rememberLabel chooses the label with the host's fleet.
func rememberLabel(ctx context.Context, v *victim) error {
	if err := needNode(ctx, v); err != nil {
		return err
	}
	labels, err := v.nodeLabels()
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		if value, ok := labels[name].(string); ok && strings.HasSuffix(name, "/fleet") {
			v.record.Settings["label"], v.record.Settings["value"] = name, value
		}
	}
	return err
}

func (v *victim) setLabel(value string) error {
	name := v.record.Settings["label"]
	if name == "" {
		return nil
	}
	return v.world.kube.Edit(v.node(), func(content map[string]any) map[string]any {
		metadata, _ := content["metadata"].(map[string]any)
		if labels, ok := metadata["labels"].(map[string]any); ok {
			labels[name] = value
		}
		return content
	})
}

func overwriteLabel(_ context.Context, v *victim) error {
	if err := v.world.kube.Bare(v.server.ID, true); err != nil {
		return err
	}
	return v.setLabel(strangerLabel)
}

func labelOverwritten(_ context.Context, v *victim) (bool, error) {
	labels, err := v.nodeLabels()
	return labels[v.record.Settings["label"]] == strangerLabel, err
}

func restoreLabel(ctx context.Context, v *victim) error {
	if err := ignoreNoNode(v.world.kube.Bare(v.server.ID, false)); err != nil {
		return err
	}
	if there, err := labelOverwritten(ctx, v); err != nil || !there {
		return err
	}
	return v.setLabel(v.record.Settings["value"])
}
