// The oracle of the tests of health: what kstatus says of objects.
//
// It answers each line of standard input, a JSON object of Kubernetes, with a line of standard output: its state and
// why, or that kstatus gives none.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

type answer struct {
	Status  string `json:"status"`
	Message string `json:"message"`
	Error   string `json:"error"`
}

func main() {
	input := bufio.NewScanner(os.Stdin)
	input.Buffer(nil, 1<<26)
	for input.Scan() {
		given, err := json.Marshal(stateOf(input.Bytes()))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(string(given))
	}
	if err := input.Err(); err != nil {
		log.Fatal(err)
	}
}

func stateOf(line []byte) (given answer) {
	// It takes much of what it is given on trust.
	defer func() {
		if panicked := recover(); panicked != nil {
			given = answer{Error: fmt.Sprint(panicked)}
		}
	}()
	object := unstructured.Unstructured{}
	if err := object.UnmarshalJSON(line); err != nil {
		return answer{Error: err.Error()}
	}
	result, err := status.Compute(&object)
	if err != nil {
		return answer{Error: err.Error()}
	}
	return answer{Status: string(result.Status), Message: result.Message}
}
