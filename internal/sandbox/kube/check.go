package kube

import (
	"encoding/base64"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// check refuses what the real server would not store: in all objects, and in those of the kinds that
// macfleet writes. before is nil for a new object.
func (k *kind) check(o, before *object) error {
	metadata := field.NewPath("metadata")
	if o.GetName() == "" {
		return invalid(k, "", field.Required(metadata.Child("name"), "name or generateName is required"))
	}
	errs := validation.ValidateObjectMetaAccessor(o, k.namespaced, k.validName, metadata)
	if !validFile(o.GetName()) && len(errs) == 0 {
		errs = append(errs, field.Invalid(metadata.Child("name"), o.GetName(), "NOT MODELLED by the sandbox's Kubernetes: it cannot be the name of a file"))
	}
	if before != nil {
		if before.GetDeletionTimestamp() != nil {
			errs = append(errs, validation.ValidateNoNewFinalizers(o.GetFinalizers(), before.GetFinalizers(), metadata.Child("finalizers"))...)
		}
		errs = append(errs, k.checkFixed(o, before)...)
	}
	switch k.resource {
	case nodes:
		errs = append(errs, checkTaints(o)...)
	case pods:
		errs = append(errs, checkPod(o)...)
	case secrets, configMaps:
		errs = append(errs, checkData(o)...)
	case leases:
		if seconds, ok := at(o, "spec", "leaseDurationSeconds").(int64); ok && seconds <= 0 {
			errs = append(errs, field.Invalid(field.NewPath("spec", "leaseDurationSeconds"), seconds, "must be greater than 0"))
		}
	case disruptionBudgets:
		if at(o, "spec", "minAvailable") != nil && at(o, "spec", "maxUnavailable") != nil {
			errs = append(errs, field.Invalid(field.NewPath("spec"), "", "minAvailable and maxUnavailable cannot be both set"))
		}
	case roles, clusterRoles:
		errs = append(errs, checkRules(o, k.namespaced)...)
	case roleBindings, clusterRoleBindings:
		errs = append(errs, checkSubjects(o)...)
	}
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(k.gvk().GroupKind(), o.GetName(), errs)
}

func invalid(k *kind, name string, causes ...*field.Error) error {
	return apierrors.NewInvalid(k.gvk().GroupKind(), name, causes)
}

// checkFixed refuses changes of immutable fields.
func (k *kind) checkFixed(o, before *object) field.ErrorList {
	var errs field.ErrorList
	fixed := func(path ...string) {
		was, is := at(before, path...), at(o, path...)
		if !reflect.DeepEqual(was, is) {
			errs = append(errs, field.Invalid(field.NewPath(path[0], path[1:]...), is, "field is immutable"))
		}
	}
	switch k.resource {
	case nodes:
		was, is := textAt(before, "spec", "providerID"), textAt(o, "spec", "providerID")
		if was != "" && is != was {
			errs = append(errs, field.Forbidden(field.NewPath("spec", "providerID"), `node updates may not change providerID except from "" to valid`))
		}
	case secrets:
		fixed("type")
		if at(before, "immutable") == true {
			fixed("immutable")
			fixed("data")
		}
	case configMaps:
		if at(before, "immutable") == true {
			fixed("immutable")
			fixed("data")
			fixed("binaryData")
		}
	case pods:
		if !reflect.DeepEqual(fixedSpec(before), fixedSpec(o)) {
			errs = append(errs, field.Forbidden(field.NewPath("spec"), "pod updates may not change fields other than "+
				"`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"+
				"`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"))
		}
	case roleBindings, clusterRoleBindings:
		if !reflect.DeepEqual(before.Object["roleRef"], o.Object["roleRef"]) {
			errs = append(errs, field.Invalid(field.NewPath("roleRef"), o.Object["roleRef"], "cannot change roleRef"))
		}
	case "daemonsets", "deployments", "replicasets":
		fixed("spec", "selector")
	}
	return errs
}

// fixedSpec returns the immutable part of a Pod's specification.
func fixedSpec(pod *object) map[string]any {
	spec, _ := pod.DeepCopy().Object["spec"].(map[string]any)
	for _, list := range []string{"containers", "initContainers"} {
		items, _ := spec[list].([]any)
		for _, container := range mapsOf(items) {
			delete(container, "image")
		}
	}
	for _, name := range []string{"activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds"} {
		delete(spec, name)
	}
	return spec
}

func checkTaints(o *object) field.ErrorList {
	var errs field.ErrorList
	seen := map[[2]any]bool{}
	path := field.NewPath("metadata", "taints") // as the real server names it
	for i, taint := range itemsAt(o, "spec", "taints") {
		key, _ := taint["key"].(string)
		value, _ := taint["value"].(string)
		errs = append(errs, metavalidation.ValidateLabelName(key, path.Index(i).Child("key"))...)
		for _, reason := range utilvalidation.IsValidLabelValue(value) {
			errs = append(errs, field.Invalid(path.Index(i).Child("value"), value, reason))
		}
		switch corev1.TaintEffect(textAt(&object{Object: taint}, "effect")) {
		case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
		default:
			errs = append(errs, field.NotSupported(path.Index(i).Child("effect"), taint["effect"], []string{"NoSchedule", "PreferNoSchedule", "NoExecute"}))
		}
		if pair := [2]any{taint["key"], taint["effect"]}; seen[pair] {
			errs = append(errs, field.Duplicate(path.Index(i), taint["key"]))
		} else {
			seen[pair] = true
		}
	}
	return errs
}

func checkPod(o *object) field.ErrorList {
	var errs field.ErrorList
	containers := field.NewPath("spec", "containers")
	found := itemsAt(o, "spec", "containers")
	if len(found) == 0 {
		errs = append(errs, field.Required(containers, ""))
	}
	for i, container := range found {
		name, _ := container["name"].(string)
		if name == "" {
			errs = append(errs, field.Required(containers.Index(i).Child("name"), ""))
		} else if reasons := utilvalidation.IsDNS1123Label(name); len(reasons) > 0 {
			errs = append(errs, field.Invalid(containers.Index(i).Child("name"), name, reasons[0]))
		}
	}
	return errs
}

// maxData is the maximum size of a Secret or ConfigMap in bytes.
const maxData = 1 << 20

func checkData(o *object) field.ErrorList {
	var errs field.ErrorList
	total := 0
	for _, part := range []string{"data", "binaryData"} {
		values, _, _ := unstructured.NestedStringMap(o.Object, part)
		for key, value := range values {
			for _, reason := range utilvalidation.IsConfigMapKey(key) {
				errs = append(errs, field.Invalid(field.NewPath(part).Key(key), key, reason))
			}
			if o.GetKind() == "Secret" || part == "binaryData" {
				data, _ := base64.StdEncoding.DecodeString(value) // its form was checked with its type
				value = string(data)
			}
			total += len(value)
		}
	}
	if total > maxData {
		errs = append(errs, field.TooLong(field.NewPath("data"), "", maxData))
	}
	if textAt(o, "type") == string(corev1.SecretTypeServiceAccountToken) && o.GetAnnotations()[corev1.ServiceAccountNameKey] == "" {
		errs = append(errs, field.Required(field.NewPath("metadata", "annotations").Key(corev1.ServiceAccountNameKey), ""))
	}
	return errs
}

func checkRules(o *object, namespaced bool) field.ErrorList {
	var errs field.ErrorList
	for i, item := range itemsAt(o, "rules") {
		rule, path := &object{Object: item}, field.NewPath("rules").Index(i)
		list := func(name string) int { items, _ := at(rule, name).([]any); return len(items) }
		switch {
		case list("verbs") == 0:
			errs = append(errs, field.Required(path.Child("verbs"), "verbs must contain at least one value"))
		case list("nonResourceURLs") > 0 && namespaced:
			errs = append(errs, field.Invalid(path.Child("nonResourceURLs"), item["nonResourceURLs"], "namespaced rules cannot apply to non-resource URLs"))
		case list("nonResourceURLs") > 0 && list("apiGroups")+list("resources")+list("resourceNames") > 0:
			errs = append(errs, field.Invalid(path.Child("nonResourceURLs"), item["nonResourceURLs"], "rules cannot apply to both regular resources and non-resource URLs"))
		case list("nonResourceURLs") > 0:
		case list("apiGroups") == 0:
			errs = append(errs, field.Required(path.Child("apiGroups"), "resource rules must supply at least one api group"))
		case list("resources") == 0:
			errs = append(errs, field.Required(path.Child("resources"), "resource rules must supply at least one resource"))
		}
	}
	return errs
}

func checkSubjects(o *object) field.ErrorList {
	var errs field.ErrorList
	role := field.NewPath("roleRef")
	if kind := textAt(o, "roleRef", "kind"); kind != "ClusterRole" && (kind != "Role" || o.GetNamespace() == "") {
		errs = append(errs, field.NotSupported(role.Child("kind"), kind, []string{"ClusterRole", "Role"}))
	}
	if textAt(o, "roleRef", "name") == "" {
		errs = append(errs, field.Required(role.Child("name"), ""))
	}
	for i, item := range itemsAt(o, "subjects") {
		one, path := &object{Object: item}, field.NewPath("subjects").Index(i)
		if textAt(one, "name") == "" {
			errs = append(errs, field.Required(path.Child("name"), ""))
		}
		switch kind := textAt(one, "kind"); kind {
		case "ServiceAccount":
			if textAt(one, "namespace") == "" {
				errs = append(errs, field.Required(path.Child("namespace"), ""))
			}
			if group := textAt(one, "apiGroup"); group != "" {
				errs = append(errs, field.NotSupported(path.Child("apiGroup"), group, []string{""}))
			}
		case "User", "Group":
		default:
			errs = append(errs, field.NotSupported(path.Child("kind"), kind, []string{"ServiceAccount", "User", "Group"}))
		}
	}
	return errs
}
