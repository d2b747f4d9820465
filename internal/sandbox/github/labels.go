package github

import (
	"net/http"
	"slices"
	"strings"
)

// longestLabel is the most characters of a label.
const longestLabel = 256

// inLabels returns the index of a label without regard to case, or -1.
func inLabels(all []string, name string) int {
	return slices.IndexFunc(all, func(one string) bool { return strings.EqualFold(one, name) })
}

// shown answers the labels of a runner.
func shown(r Runner) answer {
	all := r.labels()
	if all == nil {
		all = []label{}
	}
	return answer{status: http.StatusOK, body: map[string]any{"total_count": len(all), "labels": all}}
}

func (a *API) getLabels(c *call) (answer, *failure) {
	_, r, failed := a.runner(c)
	return shown(r), failed
}

// setLabels replaces the custom labels, addLabels adds to them.
func (a *API) setLabels(c *call) (answer, *failure) { return a.relabel(c, false) }
func (a *API) addLabels(c *call) (answer, *failure) { return a.relabel(c, true) }

func (a *API) relabel(c *call, add bool) (answer, *failure) {
	_, r, failed := a.runner(c)
	if failed != nil {
		return answer{}, failed
	}
	var body struct {
		Labels *[]string `json:"labels"`
	}
	if failed := c.read(&body); failed != nil {
		return answer{}, failed
	}
	if body.Labels == nil || add && len(*body.Labels) == 0 || len(*body.Labels) > 100 {
		return answer{}, &failure{status: http.StatusUnprocessableEntity, message: "Validation Failed",
			errors: []fieldError{{Resource: "Runner", Field: "labels", Code: "invalid"}}}
	}
	if !add {
		r.Labels = nil
	}
	for _, name := range *body.Labels {
		if name == "" || len([]rune(name)) > longestLabel {
			return answer{}, invalid("Validation Failed: a label has 1 to %d characters", longestLabel)
		}
		if inLabels(r.Labels, name) < 0 && inLabels(r.fixed(), name) < 0 {
			r.Labels = append(r.Labels, name)
		}
	}
	return a.labelled(r)
}

func (a *API) labelled(r Runner) (answer, *failure) {
	if err := a.put(r); err != nil {
		return answer{}, internal(err)
	}
	return shown(r), nil
}

func (a *API) clearLabels(c *call) (answer, *failure) {
	_, r, failed := a.runner(c)
	if failed != nil {
		return answer{}, failed
	}
	r.Labels = nil
	return a.labelled(r)
}

func (a *API) deleteLabel(c *call) (answer, *failure) {
	_, r, failed := a.runner(c)
	if failed != nil {
		return answer{}, failed
	}
	name := c.r.PathValue("label")
	if inLabels(r.fixed(), name) >= 0 {
		return answer{}, invalid("Bad request - The label %q is read-only and cannot be removed", name)
	}
	i := inLabels(r.Labels, name)
	if i < 0 {
		return answer{}, notFound()
	}
	r.Labels = slices.Delete(r.Labels, i, i+1)
	return a.labelled(r)
}
