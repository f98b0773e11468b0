package main

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"runtime/debug"
	"slices"
	"sort"
	"strings"
	"unicode"

	"github.com/operator-framework/api/pkg/lib/release"
	"github.com/operator-framework/api/pkg/lib/version"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// roots are the types that the table is the closure of.
var roots = []reflect.Type{
	reflect.TypeFor[v1alpha1.ClusterServiceVersion](),
	reflect.TypeFor[apiextensionsv1.CustomResourceDefinition](),
	reflect.TypeFor[v1alpha1.SubscriptionConfig](),
	reflect.TypeFor[v1alpha1.CatalogSource](),
	reflect.TypeFor[v1alpha1.Subscription](),
	reflect.TypeFor[operatorsv1.OperatorGroup](),
	reflect.TypeFor[corev1.Namespace](),
	reflect.TypeFor[corev1.Secret](),
	reflect.TypeFor[corev1.LocalObjectReference](),
	reflect.TypeFor[metav1.LabelSelector](),
	reflect.TypeFor[metav1.ObjectMeta](),
}

// scalars are the types with a JSON decoder of their own, and the shape that stands for each.
var scalars = map[reflect.Type]string{
	reflect.TypeFor[apiextensionsv1.JSON]():                         "Any",
	reflect.TypeFor[json.RawMessage]():                              "Any",
	reflect.TypeFor[metav1.FieldsV1]():                              "Any",
	reflect.TypeFor[runtime.RawExtension]():                         "Any",
	reflect.TypeFor[[]byte]():                                       "Bytes",
	reflect.TypeFor[intstr.IntOrString]():                           "IntOrString",
	reflect.TypeFor[resource.Quantity]():                            "Quantity",
	reflect.TypeFor[metav1.Time]():                                  "Time",
	reflect.TypeFor[version.OperatorVersion]():                      "Version",
	reflect.TypeFor[release.OperatorRelease]():                      "Release",
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrBool]():        "SchemaOrBool(&APIEXTENSIONS_V1_JSON_SCHEMA_PROPS)",
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrArray]():       "SchemaOrList(&APIEXTENSIONS_V1_JSON_SCHEMA_PROPS)",
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrStringArray](): "SchemaOrNames(&APIEXTENSIONS_V1_JSON_SCHEMA_PROPS)",
}

// discarded is a status, which belongs to the cluster.
var discarded = reflect.TypeFor[apiextensionsv1.CustomResourceDefinitionStatus]()

type field struct {
	of   reflect.Type
	name string
}

// asWritten are types that decode JSON by themselves into what their fields say, and only keep more than that.
var asWritten = map[reflect.Type]bool{reflect.TypeFor[v1alpha1.UpdateStrategy](): true}

// zeroAlwaysPrinted tells for every field whose zero Go prints although nobody wrote it whether an API server would
// miss it. A new field of this kind in a newer Go type stops the generator until it is decided here.
var zeroAlwaysPrinted = map[field]bool{
	// Keys of the lists that server-side apply merges, and values that every stored object shows.
	{reflect.TypeFor[corev1.ContainerPort](), "containerPort"}:                      true,
	{reflect.TypeFor[corev1.GRPCAction](), "port"}:                                  true,
	{reflect.TypeFor[corev1.HTTPGetAction](), "port"}:                               true,
	{reflect.TypeFor[corev1.TCPSocketAction](), "port"}:                             true,
	{reflect.TypeFor[corev1.ResourceFieldSelector](), "divisor"}:                    true,
	{reflect.TypeFor[apiextensionsv1.CustomResourceDefinitionVersion](), "served"}:  true,
	{reflect.TypeFor[apiextensionsv1.CustomResourceDefinitionVersion](), "storage"}: true,
	// Absent and zero mean the same.
	{reflect.TypeFor[corev1.ISCSIVolumeSource](), "lun"}:               false,
	{reflect.TypeFor[corev1.PreferredSchedulingTerm](), "weight"}:      false,
	{reflect.TypeFor[corev1.SleepAction](), "seconds"}:                 false,
	{reflect.TypeFor[corev1.TopologySpreadConstraint](), "maxSkew"}:    false,
	{reflect.TypeFor[corev1.WeightedPodAffinityTerm](), "weight"}:      false,
	{reflect.TypeFor[v1alpha1.CleanupSpec](), "enabled"}:               false,
	{reflect.TypeFor[v1alpha1.InstallMode](), "supported"}:             false,
	{reflect.TypeFor[v1alpha1.ClusterServiceVersionSpec](), "version"}: false,
	{reflect.TypeFor[v1alpha1.SubscriptionCatalogHealth](), "healthy"}: false,
}

// decodedOnly are types that OLM reads and never prints: it tells an empty map (nodeSelector: {}) from none.
var decodedOnly = map[reflect.Type]bool{reflect.TypeFor[v1alpha1.SubscriptionConfig](): true}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

type table struct {
	lines map[reflect.Type]string
	// added are the structs with a field that is written even when absent.
	added map[reflect.Type]bool
	// embedded are the structs that some field holds by value.
	embedded map[reflect.Type]string
}

func writeTable(out io.Writer) error {
	t := table{lines: map[reflect.Type]string{}, added: map[reflect.Type]bool{}, embedded: map[reflect.Type]string{}}
	for _, root := range roots {
		if err := t.structure(root); err != nil {
			return err
		}
	}
	for held, by := range t.embedded {
		if t.added[held] {
			return fmt.Errorf("%s holds %s by value, and Go would print it with a field that must be added", by, held)
		}
	}
	var lines []string
	for _, line := range t.lines {
		lines = append(lines, line)
	}
	// By name, whatever a line begins with.
	sort.Slice(lines, func(i, j int) bool {
		return strings.TrimPrefix(lines[i], "pub ") < strings.TrimPrefix(lines[j], "pub ")
	})
	fmt.Fprintf(out, header, versions(), strings.Join(lines, ""))
	return nil
}

const header = `//! The Go types that OLM decodes objects into, field by field: names in JSON, shapes, and what Go does with a zero.
//!
//! Generated by the Go program go-types ("go-types table") from the types themselves; do not edit. It holds the
//! closure of the types named below, from
//!
%s//!
//! It is data only: what the entries mean is told in the module conform, which walks them.

pub use table::{
    APIEXTENSIONS_V1_CUSTOM_RESOURCE_DEFINITION as CUSTOM_RESOURCE_DEFINITION,
    CORE_V1_LOCAL_OBJECT_REFERENCE as LOCAL_OBJECT_REFERENCE, CORE_V1_NAMESPACE as NAMESPACE,
    CORE_V1_SECRET as SECRET, META_V1_LABEL_SELECTOR as LABEL_SELECTOR,
    META_V1_OBJECT_META as OBJECT_META, OPERATORS_V1_OPERATOR_GROUP as OPERATOR_GROUP,
    OPERATORS_V1ALPHA1_CATALOG_SOURCE as CATALOG_SOURCE,
    OPERATORS_V1ALPHA1_CLUSTER_SERVICE_VERSION as CLUSTER_SERVICE_VERSION,
    OPERATORS_V1ALPHA1_SUBSCRIPTION as SUBSCRIPTION,
    OPERATORS_V1ALPHA1_SUBSCRIPTION_CONFIG as SUBSCRIPTION_CONFIG,
};

#[rustfmt::skip]
mod table {
use super::super::conform::{Field, Shape, Shape::*, Struct, Zero};

const fn pointer(name: &'static str, shape: Shape) -> Field { Field { name, shape, pointer: true, zero: Zero::Kept } }
const fn dropped(name: &'static str, shape: Shape) -> Field { Field { name, shape, pointer: false, zero: Zero::Dropped } }
const fn kept(name: &'static str, shape: Shape) -> Field { Field { name, shape, pointer: false, zero: Zero::Kept } }
const fn added(name: &'static str, shape: Shape) -> Field { Field { name, shape, pointer: false, zero: Zero::Added } }

%s}
`

// versions lists the modules that the types come from.
func versions() string {
	var list strings.Builder
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		switch module.Path {
		case "k8s.io/api", "k8s.io/apimachinery", "k8s.io/apiextensions-apiserver", "github.com/operator-framework/api":
			fmt.Fprintf(&list, "//! - %s %s\n", module.Path, module.Version)
		}
	}
	return list.String()
}

// structure adds the line of a struct, and of all that it reaches.
func (t *table) structure(of reflect.Type) error {
	if _, known := t.lines[of]; known {
		return nil
	}
	t.lines[of] = "" // breaks the cycle of JSONSchemaProps
	fields, err := t.fields(of)
	if err != nil {
		return err
	}
	sort.Strings(fields)
	previous := ""
	for i, line := range fields {
		name, entry, _ := strings.Cut(line, "\x00")
		if i > 0 && name == previous {
			return fmt.Errorf("%s has two fields %q", of, name)
		}
		previous, fields[i] = name, entry
	}
	visible := ""
	if slices.Contains(roots, of) {
		visible = "/// " + title(of) + ", as Go decodes it.\npub "
	}
	t.lines[of] = fmt.Sprintf("%sstatic %s: Struct = Struct::new(%q, &[%s]);\n",
		visible, constant(of), title(of), strings.Join(fields, ", "))
	return nil
}

// fields gives "name\x00entry" for every field, those of inlined structs included.
func (t *table) fields(of reflect.Type) ([]string, error) {
	var lines []string
	for i := range of.NumField() {
		f := of.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-":
			continue
		case name == "" && f.Anonymous:
			if f.Type.Kind() != reflect.Struct {
				return nil, fmt.Errorf("%s inlines %s, which is not a struct", of, f.Type)
			}
			inlined, err := t.fields(f.Type)
			if err != nil {
				return nil, err
			}
			lines = append(lines, inlined...)
			continue
		case name == "":
			name = f.Name
		}
		shape, err := t.shape(f.Type)
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", of, f.Name, err)
		}
		kind, err := t.kind(of, f, name, strings.Contains(options, "omit"))
		if err != nil {
			return nil, err
		}
		lines = append(lines, fmt.Sprintf("%s\x00%s(%q, %s)", name, kind, name, shape))
	}
	return lines, nil
}

// kind names the constructor of an entry: what becomes of a zero value.
func (t *table) kind(of reflect.Type, f reflect.StructField, name string, omit bool) (string, error) {
	if f.Type.Kind() == reflect.Pointer {
		return "pointer", nil
	}
	if decodedOnly[of] {
		return "kept", nil
	}
	scalar, custom := scalars[f.Type]
	printed := !omit
	if f.Type.Kind() == reflect.Struct {
		if !custom {
			t.embedded[f.Type] = of.String()
		}
		// Go's omitempty never leaves a struct out; omitzero does, and Time and Release print no zero at all.
		printed = custom && scalar != "Time" && scalar != "Release"
	}
	switch f.Type.Kind() {
	case reflect.Slice, reflect.Map, reflect.String:
		printed = false
	}
	if printed {
		add, decided := zeroAlwaysPrinted[field{of, name}]
		if !decided {
			return "", fmt.Errorf("%s.%s: Go prints its zero; decide in zeroAlwaysPrinted", of, f.Name)
		}
		if add {
			t.added[of] = true
			return "added", nil
		}
		return "kept", nil
	}
	if omit && !custom && f.Type.Kind() != reflect.Struct || scalar == "Bytes" && omit {
		return "dropped", nil
	}
	return "kept", nil
}

func (t *table) shape(of reflect.Type) (string, error) {
	if shape, custom := scalars[of]; custom {
		return shape, nil
	}
	decodes := of.Implements(unmarshaler) || reflect.PointerTo(of).Implements(unmarshaler)
	if of.Kind() != reflect.Pointer && decodes && !asWritten[of] {
		return "", fmt.Errorf("%s decodes JSON by itself; say in scalars how", of)
	}
	switch of.Kind() {
	case reflect.Bool:
		return "Bool", nil
	case reflect.String:
		return "String", nil
	case reflect.Int32:
		return "Int32", nil
	case reflect.Int, reflect.Int64:
		return "Int64", nil
	case reflect.Float64:
		return "Float", nil
	case reflect.Struct:
		name := "Struct"
		if of == discarded {
			name = "Discarded"
		}
		return fmt.Sprintf("%s(&%s)", name, constant(of)), t.structure(of)
	case reflect.Pointer:
		switch of.Elem().Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			return "", fmt.Errorf("a pointer to %s is not provided for", of.Elem())
		}
		return t.shape(of.Elem())
	case reflect.Slice, reflect.Map:
		_, custom := scalars[of.Elem()]
		switch of.Elem().Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			if !custom {
				return "", fmt.Errorf("%s is not provided for", of)
			}
		}
		inner, err := t.shape(of.Elem())
		name := map[reflect.Kind]string{reflect.Slice: "List", reflect.Map: "Map"}[of.Kind()]
		return fmt.Sprintf("%s(&%s)", name, inner), err
	}
	return "", fmt.Errorf("%s is not provided for", of)
}

// title is the Go type as a person writes it: apps/v1 DeploymentSpec.
func title(of reflect.Type) string {
	parts := strings.Split(of.PkgPath(), "/")
	return strings.Join(parts[len(parts)-2:], "/") + " " + of.Name()
}

// constant is the name of a type's entry: APPS_V1_DEPLOYMENT_SPEC.
func constant(of reflect.Type) string {
	parts := strings.Split(of.PkgPath(), "/")
	name := strings.ToUpper(strings.Join(parts[len(parts)-2:], "_")) + "_"
	letters := []rune(of.Name())
	for i, letter := range letters {
		follows := i > 0 && unicode.IsUpper(letter)
		if follows && (unicode.IsLower(letters[i-1]) || i+1 < len(letters) && unicode.IsLower(letters[i+1])) {
			name += "_"
		}
		name += string(unicode.ToUpper(letter))
	}
	return name
}
