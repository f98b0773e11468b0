// Command go-types prints the Rust table of the Go types that OLM decodes objects into, and shows what Go itself
// makes of an object, so that the Rust side can be compared with it.
//
//	go-types table            the table, as Rust source, on standard output
//	go-types convert          reads one JSON object a line, writes one result a line
//	go-types corpus DIR       the same for every ClusterServiceVersion and CustomResourceDefinition below DIR
package main

import (
	"bufio"
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "go-types:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	switch {
	case len(args) == 1 && args[0] == "table":
		return writeTable(out)
	case len(args) == 1 && args[0] == "convert":
		return convertLines(os.Stdin, out)
	case len(args) == 2 && args[0] == "corpus":
		return convertCorpus(args[1], out)
	}
	return fmt.Errorf("usage: go-types table | convert | corpus DIR")
}
