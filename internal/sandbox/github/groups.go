package github

import (
	"net/http"
	"slices"
	"strings"
)

// ofOrganization refuses a repository: only organizations have groups.
func (c *call) ofOrganization() *failure {
	if strings.Contains(c.scope, "/") {
		return notFound()
	}
	return nil
}

func (g Group) answer() any {
	return map[string]any{"id": g.ID, "name": g.Name, "visibility": g.Visibility, "default": g.ID == defaultGroup,
		"allows_public_repositories": g.Public, "inherited": false, "restricted_to_workflows": false, "selected_workflows": []string{}}
}

func (a *API) listGroups(c *call) (answer, *failure) {
	if failed := c.ofOrganization(); failed != nil {
		return answer{}, failed
	}
	return paged(c, "runner_groups", c.own.groups(), Group.answer), nil
}

// named returns the group that a request names.
func (c *call) named() (Group, *failure) {
	if failed := c.ofOrganization(); failed != nil {
		return Group{}, failed
	}
	id, failed := c.number("group")
	if failed != nil {
		return Group{}, failed
	}
	g, ok := c.own.group(id)
	if !ok {
		return Group{}, notFound()
	}
	return g, nil
}

func (a *API) getGroup(c *call) (answer, *failure) {
	g, failed := c.named()
	if failed != nil {
		return answer{}, failed
	}
	return answer{status: http.StatusOK, body: g.answer()}, nil
}

func (a *API) groupRepositories(c *call) (answer, *failure) {
	g, failed := c.named()
	if failed != nil {
		return answer{}, failed
	}
	return paged(c, "repositories", g.Repositories, func(name string) any {
		return map[string]any{"id": idOf(c.scope + "/" + name), "name": name, "full_name": c.scope + "/" + name}
	}), nil
}

// repository answers a repository itself.
func (a *API) repository(c *call) (answer, *failure) {
	private := !slices.ContainsFunc(c.own.PublicRepositories, func(name string) bool { return strings.EqualFold(name, c.scope) })
	visibility := "public"
	if private {
		visibility = "private"
	}
	return answer{status: http.StatusOK, body: map[string]any{"id": idOf(c.scope), "full_name": c.scope, "private": private, "visibility": visibility}}, nil
}

func (a *API) listGroup(c *call) (answer, *failure) {
	g, failed := c.named()
	if failed != nil {
		return answer{}, failed
	}
	s, err := a.load(c.now)
	if err != nil {
		return answer{}, internal(err)
	}
	all := slices.DeleteFunc(s.within(c.scope), func(r Runner) bool { return r.Group != g.ID })
	return paged(c, "runners", all, func(r Runner) any { return s.answer(r) }), nil
}

func (a *API) moveRunner(c *call) (answer, *failure) {
	g, failed := c.named()
	if failed != nil {
		return answer{}, failed
	}
	return a.moved(c, g.ID)
}

// leaveGroup moves a runner to the group that every organization has.
func (a *API) leaveGroup(c *call) (answer, *failure) {
	if _, failed := c.named(); failed != nil {
		return answer{}, failed
	}
	return a.moved(c, defaultGroup)
}

func (a *API) moved(c *call, group int64) (answer, *failure) {
	_, r, failed := a.runner(c)
	if failed != nil {
		return answer{}, failed
	}
	r.Group = group
	if err := a.put(r); err != nil {
		return answer{}, internal(err)
	}
	return answer{status: http.StatusNoContent}, nil
}
