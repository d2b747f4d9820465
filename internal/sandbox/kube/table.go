package kube

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
)

// column is a column of kubectl's output for a kind.
type column struct {
	name string
	wide bool // shown only on request
	cell func(o *object, now time.Time) any
}

type table struct {
	Kind       string                         `json:"kind"`
	APIVersion string                         `json:"apiVersion"`
	Metadata   *listMeta                      `json:"metadata"`
	Columns    []metav1.TableColumnDefinition `json:"columnDefinitions"`
	Rows       []row                          `json:"rows"`
}

type row struct {
	Cells  []any `json:"cells"`
	Object any   `json:"object"`
}

// newTable formats objects as a table, each with the metadata that kubectl sorts by.
func newTable(r *request, objects []*object) *table {
	columns := r.kind.columns
	if columns == nil {
		columns = ageColumns()
	}
	columns = append([]column{{name: "Name", cell: func(o *object, _ time.Time) any { return o.GetName() }}}, columns...)
	t := &table{Kind: "Table", APIVersion: "meta.k8s.io/v1", Metadata: &listMeta{}, Rows: []row{}}
	for i, c := range columns {
		definition := metav1.TableColumnDefinition{Name: c.name, Type: "string", Description: c.name}
		if i == 0 {
			definition.Format = "name"
		}
		if c.wide {
			definition.Priority = 1
		}
		t.Columns = append(t.Columns, definition)
	}
	for _, o := range objects {
		one := row{Object: partial(o)}
		if r.query.Get("includeObject") == "Object" {
			one.Object = o
		} else if r.query.Get("includeObject") == "None" {
			one.Object = nil
		}
		for _, c := range columns {
			one.Cells = append(one.Cells, c.cell(o, r.now))
		}
		t.Rows = append(t.Rows, one)
		t.Metadata.ResourceVersion = o.GetResourceVersion()
	}
	return t
}

// textColumn is a column that shows one field as text.
func textColumn(name string, wide bool, path ...string) column {
	return column{name, wide, func(o *object, _ time.Time) any { return orNone(textAt(o, path...)) }}
}

func orNone(text string) string {
	if text == "" {
		return "<none>"
	}
	return text
}

func age(since, now time.Time) string {
	if since.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(since))
}

func ageColumns() []column {
	return []column{{"Age", false, func(o *object, now time.Time) any { return age(o.GetCreationTimestamp().Time, now) }}}
}

func namespaceColumns() []column {
	return append([]column{textColumn("Status", false, "status", "phase")}, ageColumns()...)
}

func nodeColumns() []column {
	return append(append([]column{
		{"Status", false, func(o *object, _ time.Time) any { return nodeStatus(o) }},
		{"Roles", false, func(o *object, _ time.Time) any { return nodeRoles(o) }},
	}, ageColumns()...),
		textColumn("Version", false, "status", "nodeInfo", "kubeletVersion"),
		column{"Internal-IP", true, func(o *object, _ time.Time) any { return nodeAddress(o, "InternalIP") }},
		column{"External-IP", true, func(o *object, _ time.Time) any { return nodeAddress(o, "ExternalIP") }},
		textColumn("OS-Image", true, "status", "nodeInfo", "osImage"),
		textColumn("Kernel-Version", true, "status", "nodeInfo", "kernelVersion"),
		textColumn("Container-Runtime", true, "status", "nodeInfo", "containerRuntimeVersion"),
	)
}

func nodeStatus(o *object) string {
	status := "Unknown"
	if ready := condition(o, "Ready"); ready != nil {
		status = "NotReady"
		if ready["status"] == "True" {
			status = "Ready"
		}
	}
	if at(o, "spec", "unschedulable") == true {
		status += ",SchedulingDisabled"
	}
	return status
}

func nodeRoles(o *object) string {
	var found []string
	for label := range o.GetLabels() {
		if role, ok := strings.CutPrefix(label, "node-role.kubernetes.io/"); ok && role != "" {
			found = append(found, role)
		}
	}
	slices.Sort(found)
	return orNone(strings.Join(found, ","))
}

func nodeAddress(o *object, kind string) string {
	for _, address := range itemsAt(o, "status", "addresses") {
		if address["type"] == kind {
			return fmt.Sprint(address["address"])
		}
	}
	return "<none>"
}

func podColumns() []column {
	return append(append([]column{
		{"Ready", false, func(o *object, _ time.Time) any {
			ready := 0
			for _, c := range itemsAt(o, "status", "containerStatuses") {
				if c["ready"] == true {
					ready++
				}
			}
			return fmt.Sprintf("%d/%d", ready, len(itemsAt(o, "spec", "containers")))
		}},
		{"Status", false, func(o *object, _ time.Time) any { return podStatus(o) }},
		{"Restarts", false, func(*object, time.Time) any { return "0" }},
	}, ageColumns()...),
		textColumn("IP", true, "status", "podIP"),
		textColumn("Node", true, "spec", "nodeName"),
		textColumn("Nominated Node", true, "status", "nominatedNodeName"),
		column{"Readiness Gates", true, func(*object, time.Time) any { return "<none>" }},
	)
}

func podStatus(o *object) string {
	status := textAt(o, "status", "phase")
	if reason := textAt(o, "status", "reason"); reason != "" {
		status = reason
	}
	for _, c := range itemsAt(o, "status", "containerStatuses") {
		inner := &object{Object: c}
		if reason := textAt(inner, "state", "waiting", "reason"); reason != "" {
			status = reason
		}
		if reason := textAt(inner, "state", "terminated", "reason"); reason != "" && finished(o) {
			status = reason
		}
	}
	if o.GetDeletionTimestamp() != nil && !finished(o) {
		status = "Terminating"
	}
	return status
}

func secretColumns() []column {
	return append([]column{textColumn("Type", false, "type"), countColumn("Data", "data")}, ageColumns()...)
}

func configMapColumns() []column {
	return append([]column{countColumn("Data", "data")}, ageColumns()...)
}

func countColumn(name string, path ...string) column {
	return column{name, false, func(o *object, _ time.Time) any {
		data, _ := at(o, path...).(map[string]any)
		return fmt.Sprint(len(data))
	}}
}

func leaseColumns() []column {
	return append([]column{textColumn("Holder", false, "spec", "holderIdentity")}, ageColumns()...)
}

func roleColumns() []column {
	return []column{{"Created At", false, func(o *object, _ time.Time) any { return textAt(o, "metadata", "creationTimestamp") }}}
}

func bindingColumns() []column {
	return append([]column{{"Role", false, func(o *object, _ time.Time) any {
		return textAt(o, "roleRef", "kind") + "/" + textAt(o, "roleRef", "name")
	}}}, ageColumns()...)
}

func budgetColumns() []column {
	either := func(name string, path ...string) column {
		return column{name, false, func(o *object, _ time.Time) any {
			if value := at(o, path...); value != nil {
				return fmt.Sprint(value)
			}
			return "N/A"
		}}
	}
	return append([]column{
		either("Min Available", "spec", "minAvailable"), either("Max Unavailable", "spec", "maxUnavailable"),
		{"Allowed Disruptions", false, func(o *object, _ time.Time) any { return numberAt(o, "status", "disruptionsAllowed") }},
	}, ageColumns()...)
}

func serviceColumns() []column {
	return append([]column{textColumn("Type", false, "spec", "type"), textColumn("Cluster-IP", false, "spec", "clusterIP")}, ageColumns()...)
}

func eventColumns() []column {
	return []column{
		{"Last Seen", false, func(o *object, now time.Time) any { return age(timeAt(o, "lastTimestamp"), now) }},
		textColumn("Type", false, "type"),
		textColumn("Reason", false, "reason"),
		{"Object", false, func(o *object, _ time.Time) any {
			return strings.ToLower(textAt(o, "involvedObject", "kind")) + "/" + textAt(o, "involvedObject", "name")
		}},
		textColumn("Message", false, "message"),
	}
}
