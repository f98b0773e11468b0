// The oracle of the YAML tests: what Kubernetes' own Go libraries read and write.
//
// It answers each line of standard input, a JSON value, with a line of standard output.
// Mode "read" takes a string, the text of a stream, and gives {"documents": [...], "error": "..."}.
// Mode "write" takes a value and gives the YAML text of it as a string, or null where Go cannot write it.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"log"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

type answer struct {
	Documents []any  `json:"documents"`
	Error     string `json:"error"`
}

// read does what StreamVisitor of k8s.io/cli-runtime does with a stream.
func read(text string) (result answer) {
	result.Documents = []any{}
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewBufferString(text), 4096)
	for {
		var document runtime.RawExtension
		if err := decoder.Decode(&document); err == io.EOF {
			return result
		} else if err != nil {
			result.Error = err.Error()
			return result
		}
		raw := bytes.TrimSpace(document.Raw)
		if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
			continue
		}
		var value any
		if err := utiljson.Unmarshal(raw, &value); err != nil {
			result.Error = err.Error()
			return result
		}
		result.Documents = append(result.Documents, rewrite(raw))
	}
}

// rewrite gives JSON that stricter readers take too: numbers as they are, halves of surrogates replaced.
func rewrite(raw []byte) any {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		log.Fatal(err)
	}
	return value
}

// write prints a value as kubectl prints an unstructured object.
func write(line []byte) any {
	var value any
	if err := utiljson.Unmarshal(line, &value); err != nil {
		log.Fatal(err)
	}
	text, err := yaml.Marshal(value)
	if err != nil {
		return nil
	}
	return string(text)
}

func main() {
	input := bufio.NewReaderSize(os.Stdin, 1<<20)
	output := bufio.NewWriterSize(os.Stdout, 1<<20)
	encoder := json.NewEncoder(output)
	for {
		line, err := input.ReadBytes('\n')
		if len(line) == 0 && err == io.EOF {
			break
		}
		var result any
		if os.Args[1] == "read" {
			var text string
			if err := json.Unmarshal(line, &text); err != nil {
				log.Fatal(err)
			}
			result = read(text)
		} else {
			result = write(line)
		}
		if err := encoder.Encode(result); err != nil {
			log.Fatal(err)
		}
		output.Flush()
	}
}
