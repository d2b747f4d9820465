package plan

import (
	"slices"
	"strings"
)

var codeForeignFieldManager = NewCode("foreign-field-manager", Critical, "another controller of the cluster writes to the host's Node",
	"pause the controller for this Node with the command that the plan prints, or add its name to ignore_field_managers in the kubernetes block")

// capiManager is the name under which the Cluster API's controllers write to Nodes.
const capiManager = "manager"

// foreignWriter returns why a host must not be changed whose Node another controller writes to, or nil: the two would
// cordon, drain and open the Node against each other. With a capi block, the Cluster API's controllers belong there.
func (c *computation) foreignWriter(h *Host) *Trouble {
	n, there := h.Node.Get()
	if c.cfg.Kubernetes == nil || !there {
		return nil
	}
	var texts, pauses []string
	for _, w := range n.Writers {
		if slices.Contains(c.cfg.Kubernetes.IgnoreFieldManagers, w.Name) || w.Name == capiManager && c.cfg.Kubernetes.CAPI != nil {
			continue
		}
		texts, pauses = append(texts, w.Name+" writes "+strings.Join(w.Fields, ", ")), append(pauses, w.Pause)
	}
	if len(texts) == 0 {
		return nil
	}
	return codeForeignFieldManager.Trouble("another controller changes its Node: "+strings.Join(texts, "; "),
		strings.Join(pauses, "; ")+"; or, if both may control it, add the name to ignore_field_managers in the kubernetes block")
}
