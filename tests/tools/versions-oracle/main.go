// The oracle of the tests of versions: what the Go libraries that OLM uses read and answer.
//
// It answers each line of standard input, a JSON object with a dialect, a text and versions, with a line of standard
// output: whether the text is refused, the version it is ("parse", "tolerant"), and an answer for each of the versions:
// whether it is in the range ("range": blang, "constraint": Masterminds) or how the text compares with it ("compare").
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strings"

	masterminds "github.com/Masterminds/semver/v3"
	"github.com/blang/semver/v4"
)

type question struct {
	Dialect  string   `json:"dialect"`
	Text     string   `json:"text"`
	Versions []string `json:"versions"`
}

type answer struct {
	Refused bool   `json:"refused"`
	Version string `json:"version"`
	Answers []int  `json:"answers"`
}

// reader gives a function that answers for a version, and the version that the text is, if it is one.
func reader(dialect, text string) (func(semver.Version) int, string, error) {
	switch dialect {
	case "parse":
		version, err := semver.Parse(text)
		return nil, version.String(), err
	case "tolerant":
		version, err := semver.ParseTolerant(text)
		return nil, version.String(), err
	case "compare":
		version, err := semver.Parse(text)
		return version.Compare, "", err
	case "range":
		contains, err := semver.ParseRange(text)
		return func(version semver.Version) int { return number(contains(version)) }, "", err
	case "constraint":
		constraint, err := masterminds.NewConstraint(text)
		return func(version semver.Version) int { return number(constraint.Check(converted(version))) }, "", err
	}
	return nil, "", fmt.Errorf("no dialect %q", dialect)
}

func number(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// converted gives the version of a bundle as OLM v1 hands it to a constraint.
func converted(version semver.Version) *masterminds.Version {
	identifiers := make([]string, len(version.Pre))
	for i, identifier := range version.Pre {
		identifiers[i] = identifier.String()
	}
	build := strings.Join(version.Build, ".")
	return masterminds.New(version.Major, version.Minor, version.Patch, strings.Join(identifiers, "."), build)
}

func ask(asked question) (result answer) {
	versions := make([]semver.Version, len(asked.Versions))
	for i, text := range asked.Versions {
		version, err := semver.Parse(text)
		if err != nil {
			log.Fatal(err)
		}
		versions[i] = version
	}
	// Some ranges are read and then crash; such a range is of no more use than a refused one.
	defer func() {
		if recover() != nil {
			result = answer{Refused: true, Answers: []int{}}
		}
	}()
	read, version, err := reader(asked.Dialect, asked.Text)
	if err != nil {
		return answer{Refused: true, Answers: []int{}}
	}
	result = answer{Version: version, Answers: []int{}}
	for _, version := range versions {
		result.Answers = append(result.Answers, read(version))
	}
	return result
}

func main() {
	input := bufio.NewReaderSize(os.Stdin, 1<<20)
	decoder := json.NewDecoder(input)
	encoder := json.NewEncoder(os.Stdout)
	for decoder.More() {
		var asked question
		if err := decoder.Decode(&asked); err != nil {
			log.Fatal(err)
		}
		if err := encoder.Encode(ask(asked)); err != nil {
			log.Fatal(err)
		}
	}
}
