package kube

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// checkEscalation prevents a user from granting rights, in a role or through a binding, that the user
// does not have, unless the user may escalate or bind that role.
func (a *API) checkEscalation(r *request, before, after *object) error {
	if r.group != rbacGroup || slices.Contains(r.user.groups, masters) {
		return nil
	}
	g, err := a.grants()
	if err != nil {
		return err
	}
	var wanted []rbacv1.PolicyRule
	var way deed // the right that makes the check unnecessary
	if r.resource == roles || r.resource == clusterRoles {
		if before != nil && string(encoded(before.Object["rules"])) == string(encoded(after.Object["rules"])) {
			return nil
		}
		way = deed{verb: "escalate", group: rbacGroup, resource: r.resource, name: after.GetName(), namespace: r.namespace}
		wanted, err = rulesOf(after)
	} else {
		ref := referenceOf(after)
		way = deed{verb: "bind", group: rbacGroup, resource: ref.resource, name: ref.name, namespace: r.namespace}
		if role, failed := a.state.peek(ref.resource, ref.namespace, ref.name); failed == nil && role == nil {
			if allowed, failed := g.allow(r.user, way); failed == nil && !allowed {
				return apierrors.NewNotFound(a.kinds.named(ref.resource).groupResource(), ref.name)
			}
		}
		wanted, err = g.of(ref)
	}
	if err != nil {
		return err
	}
	if allowed, err := g.allow(r.user, way); err != nil || allowed {
		return err
	}
	held, err := g.held(r.user, r.namespace)
	if err != nil {
		return err
	}
	missing := uncovered(held, wanted)
	if len(missing) == 0 {
		return nil
	}
	return apierrors.NewForbidden(r.kind.groupResource(), after.GetName(),
		fmt.Errorf("user %q (groups=%q) is attempting to grant RBAC permissions not currently held:\n%s", r.user.name, r.user.groups, strings.Join(missing, "\n")))
}

// uncovered describes the rules of wanted that held does not cover.
func uncovered(held, wanted []rbacv1.PolicyRule) []string {
	var missing []string
	for _, rule := range wanted {
		for _, one := range breakdown(rule) {
			if !slices.ContainsFunc(held, func(h rbacv1.PolicyRule) bool { return covers(h, one) }) {
				missing = append(missing, describe(one))
			}
		}
	}
	slices.Sort(missing)
	return slices.Compact(missing)
}

// breakdown splits a rule into rules of one verb and one resource each. One other rule covers such a
// rule, or none does.
func breakdown(rule rbacv1.PolicyRule) []rbacv1.PolicyRule {
	names := [][]string{nil}
	if len(rule.ResourceNames) > 0 {
		names = nil
		for _, name := range rule.ResourceNames {
			names = append(names, []string{name})
		}
	}
	var single []rbacv1.PolicyRule
	for _, verb := range rule.Verbs {
		for _, path := range rule.NonResourceURLs {
			single = append(single, rbacv1.PolicyRule{Verbs: []string{verb}, NonResourceURLs: []string{path}})
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, name := range names {
					single = append(single, rbacv1.PolicyRule{Verbs: []string{verb}, APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: name})
				}
			}
		}
	}
	return single
}

// covers reports whether a rule includes a broken-down one.
func covers(rule, single rbacv1.PolicyRule) bool {
	if !hasOr(rule.Verbs, single.Verbs[0], rbacv1.VerbAll) {
		return false
	}
	if len(single.NonResourceURLs) > 0 {
		path := single.NonResourceURLs[0]
		return slices.ContainsFunc(rule.NonResourceURLs, func(allowed string) bool { return allowed == path || coversPath(allowed, path) })
	}
	return hasOr(rule.APIGroups, single.APIGroups[0], rbacv1.APIGroupAll) && coversResource(rule.Resources, single.Resources[0]) &&
		(len(rule.ResourceNames) == 0 || len(single.ResourceNames) > 0 && slices.Contains(rule.ResourceNames, single.ResourceNames[0]))
}

// describe formats a rule as the real server does.
func describe(rule rbacv1.PolicyRule) string {
	var parts []string
	for _, part := range []struct {
		name   string
		values []string
	}{{"APIGroups", rule.APIGroups}, {"Resources", rule.Resources}, {"ResourceNames", rule.ResourceNames}, {"NonResourceURLs", rule.NonResourceURLs}, {"Verbs", rule.Verbs}} {
		if len(part.values) > 0 {
			quoted := fmt.Sprintf("%q", part.values)
			parts = append(parts, part.name+":"+quoted)
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}
