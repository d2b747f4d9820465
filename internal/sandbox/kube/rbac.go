package kube

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// deed is a request in the terms of RBAC.
type deed struct {
	verb                  string
	group, resource, name string // resource may be "pods/eviction"
	namespace             string // "" = the cluster's scope
	path                  string // instead of a resource
}

func (r *request) deed() deed {
	if r.resource == "" {
		return deed{verb: r.verb, path: r.URL.Path}
	}
	d := deed{verb: r.verb, group: r.group, resource: r.resource, name: r.name, namespace: r.namespace}
	if r.sub != "" {
		d.resource += "/" + r.sub
	}
	return d
}

// authorize refuses, in the real server's words, requests that the user has no right to.
func (a *API) authorize(r *request) error {
	d := r.deed()
	allowed, err := a.allowed(r.user, d)
	if err != nil || allowed {
		return err
	}
	return forbidden(r.user, d, r.resource)
}

func forbidden(who user, d deed, resource string) error {
	if d.path != "" {
		//lint:ignore ST1005 the real server's wording
		return apierrors.NewForbidden(schema.GroupResource{}, "", fmt.Errorf("User %q cannot %s path %q", who.name, d.verb, d.path))
	}
	scope := "at the cluster scope"
	if d.namespace != "" {
		scope = fmt.Sprintf("in the namespace %q", d.namespace)
	}
	return apierrors.NewForbidden(schema.GroupResource{Group: d.group, Resource: resource}, d.name,
		//lint:ignore ST1005 the real server's wording
		fmt.Errorf("User %q cannot %s resource %q in API group %q %s", who.name, d.verb, d.resource, d.group, scope))
}

// allowed reports whether a user's roles allow a deed.
func (a *API) allowed(who user, d deed) (bool, error) {
	if slices.Contains(who.groups, masters) {
		return true, nil
	}
	grants, err := a.grants()
	if err != nil {
		return false, err
	}
	return grants.allow(who, d)
}

// grants are all bindings of the cluster by subject. They are collected once per request, since 500
// kubelets have as many bindings.
type grants struct {
	state   *state
	cluster map[subject][]roleRef
	local   map[string]map[subject][]roleRef // by namespace
	rules   map[roleRef][]rbacv1.PolicyRule
}

type subject struct{ kind, name string }

type roleRef struct{ resource, namespace, name string }

func (a *API) grants() (*grants, error) {
	g := &grants{state: a.state, cluster: map[subject][]roleRef{}, local: map[string]map[subject][]roleRef{}, rules: map[roleRef][]rbacv1.PolicyRule{}}
	for _, resource := range []string{clusterRoleBindings, roleBindings} {
		bindings, err := a.state.list(resource, "")
		if err != nil {
			return nil, err
		}
		for _, binding := range bindings {
			g.add(binding)
		}
	}
	return g, nil
}

func (g *grants) add(binding *object) {
	into, namespace := g.cluster, binding.GetNamespace()
	if namespace != "" {
		if g.local[namespace] == nil {
			g.local[namespace] = map[subject][]roleRef{}
		}
		into = g.local[namespace]
	}
	ref := referenceOf(binding)
	for _, one := range itemsAt(binding, "subjects") {
		name, _ := one["name"].(string)
		kind, _ := one["kind"].(string)
		if kind == rbacv1.ServiceAccountKind {
			from, _ := one["namespace"].(string)
			kind, name = rbacv1.UserKind, accountPrefix+from+":"+name
		}
		into[subject{kind, name}] = append(into[subject{kind, name}], ref)
	}
}

func referenceOf(binding *object) roleRef {
	if textAt(binding, "roleRef", "kind") == "ClusterRole" {
		return roleRef{clusterRoles, "", textAt(binding, "roleRef", "name")}
	}
	return roleRef{roles, binding.GetNamespace(), textAt(binding, "roleRef", "name")}
}

// of returns the rules of a role, or none if it is missing.
func (g *grants) of(ref roleRef) ([]rbacv1.PolicyRule, error) {
	if known, ok := g.rules[ref]; ok {
		return known, nil
	}
	role, err := g.state.peek(ref.resource, ref.namespace, ref.name)
	if err != nil {
		return nil, err
	}
	rules := g.state.rules[ref]
	if rules.of != role {
		rules = ruled{of: role}
		if role != nil {
			if rules.rules, err = rulesOf(role); err != nil {
				return nil, err
			}
		}
		g.state.rules[ref] = rules
	}
	g.rules[ref] = rules.rules
	return rules.rules, nil
}

// ruled caches the rules of a role until the role changes.
type ruled struct {
	of    *object
	rules []rbacv1.PolicyRule
}

func rulesOf(role *object) ([]rbacv1.PolicyRule, error) {
	var typed rbacv1.ClusterRole
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(role.Object, &typed); err != nil {
		return nil, fmt.Errorf("the rules of %s: %w", role.GetName(), err)
	}
	return typed.Rules, nil
}

// held returns the rules of a user in a namespace, or ("") in the whole cluster.
func (g *grants) held(who user, namespace string) ([]rbacv1.PolicyRule, error) {
	subjects := []subject{{rbacv1.UserKind, who.name}}
	for _, group := range who.groups {
		subjects = append(subjects, subject{rbacv1.GroupKind, group})
	}
	var all []rbacv1.PolicyRule
	for _, one := range subjects {
		for _, ref := range slices.Concat(g.cluster[one], g.local[namespace][one]) {
			rules, err := g.of(ref)
			if err != nil {
				return nil, err
			}
			all = append(all, rules...)
		}
	}
	return all, nil
}

func (g *grants) allow(who user, d deed) (bool, error) {
	rules, err := g.held(who, d.namespace)
	return slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool { return allows(rule, d) }), err
}

// allows reports whether a rule allows a deed.
func allows(rule rbacv1.PolicyRule, d deed) bool {
	if !hasOr(rule.Verbs, d.verb, rbacv1.VerbAll) {
		return false
	}
	if d.path != "" {
		return slices.ContainsFunc(rule.NonResourceURLs, func(allowed string) bool { return coversPath(allowed, d.path) })
	}
	return hasOr(rule.APIGroups, d.group, rbacv1.APIGroupAll) && coversResource(rule.Resources, d.resource) &&
		(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, d.name))
}

func hasOr(list []string, wanted, all string) bool {
	return slices.Contains(list, wanted) || slices.Contains(list, all)
}

// coversResource reports whether a rule's resources include one: "*" includes all, "*/status" that
// subresource of all.
func coversResource(resources []string, wanted string) bool {
	if hasOr(resources, wanted, rbacv1.ResourceAll) {
		return true
	}
	_, sub, found := strings.Cut(wanted, "/")
	return found && slices.Contains(resources, "*/"+sub)
}

// coversPath reports whether a rule's path includes one; "*" at its end matches anything.
func coversPath(allowed, wanted string) bool {
	if prefix, ok := strings.CutSuffix(allowed, "*"); ok {
		return strings.HasPrefix(wanted, prefix)
	}
	return allowed == wanted
}
