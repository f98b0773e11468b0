package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// result is one line of output: what Go read, and what it made of it or why it did not.
type result struct {
	File  string          `json:"file,omitempty"`
	Input json.RawMessage `json:"input,omitempty"`
	Value json.RawMessage `json:"value,omitempty"`
	Error string          `json:"error,omitempty"`
}

// convertLines answers each object on its own line, in order.
func convertLines(in io.Reader, out io.Writer) error {
	lines := bufio.NewReader(in)
	encoder := json.NewEncoder(out)
	for {
		line, err := lines.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			if err := encoder.Encode(convert(line)); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// convertCorpus reads files as OLM's bundle source does (any extension, YAML or JSON streams).
func convertCorpus(root string, out io.Writer) error {
	encoder := json.NewEncoder(out)
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Base(filepath.Dir(path)) != "manifests" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		documents := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
		for {
			raw := runtime.RawExtension{}
			if err := documents.Decode(&raw); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			if kind := kindOf(raw.Raw); kind != "ClusterServiceVersion" && kind != "CustomResourceDefinition" {
				continue
			}
			answer := convert(raw.Raw)
			answer.File, answer.Input = path, raw.Raw
			if err := encoder.Encode(answer); err != nil {
				return err
			}
		}
	})
}

func kindOf(object []byte) string {
	var typed struct {
		Kind string `json:"kind"`
	}
	_ = json.Unmarshal(object, &typed)
	return typed.Kind
}

// convert decodes an object as OLM does, by its kind alone, and encodes the Go value again.
func convert(object []byte) result {
	var unstructured map[string]interface{}
	if err := kjson.Unmarshal(object, &unstructured); err != nil {
		return result{Error: "not JSON: " + err.Error()}
	}
	var typed interface{}
	switch kindOf(object) {
	case "ClusterServiceVersion":
		typed = &v1alpha1.ClusterServiceVersion{}
	case "CustomResourceDefinition":
		typed = &apiextensionsv1.CustomResourceDefinition{}
	case "Namespace":
		typed = &corev1.Namespace{}
	case "OperatorGroup":
		typed = &operatorsv1.OperatorGroup{}
	case "Secret":
		typed = &corev1.Secret{}
	case "Subscription":
		typed = &v1alpha1.Subscription{}
	case "SubscriptionConfig":
		typed = &v1alpha1.SubscriptionConfig{}
	default:
		return result{Error: "no such kind"}
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(unstructured, typed); err != nil {
		return result{Error: err.Error()}
	}
	value, err := json.Marshal(typed)
	if err != nil {
		return result{Error: "encoding: " + err.Error()}
	}
	return result{Value: value}
}
