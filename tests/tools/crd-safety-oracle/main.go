// The oracle of the tests of definitions: what crdify, with which OLM v1 checks CustomResourceDefinitions, says of a new
// version of one.
//
// It answers each line of standard input, a JSON object with the definition before ("old") and after ("new"), with a line
// of standard output: for each thing that is wrong the name of the check, the version or the pair of them, the path in
// the schema, and the text. The configuration is that of operator-controller
// internal/operator-controller/rukpak/preflights/crdupgradesafety/crdupgradesafety.go.
package main

import (
	"bufio"
	"encoding/json"
	"io"
	"log"
	"os"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/crdify/pkg/config"
	"sigs.k8s.io/crdify/pkg/runner"
	"sigs.k8s.io/crdify/pkg/validations"
	"sigs.k8s.io/crdify/pkg/validations/property"
)

type question struct {
	Old *apiextensions.CustomResourceDefinition `json:"old"`
	New *apiextensions.CustomResourceDefinition `json:"new"`
}

type finding struct {
	Check   string `json:"check"`
	Version string `json:"version"`
	Path    string `json:"path"`
	Text    string `json:"text"`
}

type answer struct {
	Findings []finding `json:"findings"`
	// Crashed says that the library ended in a panic, so that there is nothing to compare with.
	Crashed bool `json:"crashed"`
}

func add(findings []finding, version, path string, results []validations.ComparisonResult) []finding {
	for _, result := range results {
		for _, text := range result.Errors {
			findings = append(findings, finding{Check: result.Name, Version: version, Path: path, Text: text})
		}
	}
	return findings
}

func ask(asked question) (result answer) {
	defer func() {
		if recover() != nil {
			result = answer{Findings: []finding{}, Crashed: true}
		}
	}()
	run, err := runner.New(&config.Config{
		Conversion:           config.ConversionPolicyIgnore,
		UnhandledEnforcement: config.EnforcementPolicyError,
		Validations: []config.ValidationConfig{
			{Name: "description", Enforcement: config.EnforcementPolicyNone},
			{
				Name:          "enum",
				Enforcement:   config.EnforcementPolicyError,
				Configuration: map[string]any{"additionPolicy": property.AdditionPolicyAllow},
			},
		},
	}, runner.DefaultRegistry())
	if err != nil {
		log.Fatal(err)
	}
	results := run.Run(asked.Old, asked.New)
	findings := add([]finding{}, "", "", results.CRDValidation)
	for _, compared := range results.SameVersionValidation {
		for _, property := range compared.PropertyComparisons {
			findings = add(findings, compared.Version, property.Property, property.ComparisonResults)
		}
	}
	for _, compared := range results.ServedVersionValidation {
		for _, property := range compared.PropertyComparisons {
			findings = add(findings, compared.Version, property.Property, property.ComparisonResults)
		}
	}
	return answer{Findings: findings}
}

func main() {
	input := bufio.NewReaderSize(os.Stdin, 1<<20)
	output := json.NewEncoder(os.Stdout)
	for {
		line, err := input.ReadBytes('\n')
		if err == io.EOF {
			return
		}
		if err != nil {
			log.Fatal(err)
		}
		var asked question
		if err := json.Unmarshal(line, &asked); err != nil {
			log.Fatal(err)
		}
		if err := output.Encode(ask(asked)); err != nil {
			log.Fatal(err)
		}
	}
}
