// The oracle of the tests of layers: what containerd makes of a stack of them, and what Go's archive/tar finds in one.
//
// It answers each line of standard input, a JSON object, with a line of standard output. "apply": the layers, the lowest
// first, are unpacked over each other as OLM v1 does it, and the answer lists what is below the folders, links followed
// as in a container. "list": the answer lists the entries of the first layer. It needs no rights of its own.
package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/containerd/containerd/v2/pkg/archive"
	"github.com/containerd/continuity/fs"
)

type question struct {
	Ask     string   `json:"ask"`
	Layers  [][]byte `json:"layers"`
	Folders []string `json:"folders"`
}

type entry struct {
	Path   string `json:"path"`
	Kind   string `json:"kind"`
	Link   string `json:"link"`
	Size   int64  `json:"size"`
	Sha256 string `json:"sha256"`
}

type answer struct {
	// Why the layers are refused, and why what they make is.
	Refused string  `json:"refused"`
	Spoilt  string  `json:"spoilt"`
	Entries []entry `json:"entries"`
}

func digest(content io.Reader) (string, int64, error) {
	hash := sha256.New()
	size, err := io.Copy(hash, content)
	return hex.EncodeToString(hash.Sum(nil)), size, err
}

// A walk over what layers made, below a root.
type walk struct {
	root    string
	entries []entry
}

// at lists what is at a place, under a path; links are the places of those that led there.
func (w *walk) at(place, path string, links []string) error {
	info, err := os.Lstat(filepath.Join(w.root, place))
	if err != nil {
		return err
	}
	switch {
	case info.Mode().IsRegular():
		file, err := os.Open(filepath.Join(w.root, place))
		if err != nil {
			return err
		}
		defer file.Close()
		sum, size, err := digest(file)
		w.entries = append(w.entries, entry{Path: path, Kind: "file", Size: size, Sha256: sum})
		return err
	case info.IsDir():
		w.entries = append(w.entries, entry{Path: path, Kind: "folder"})
		children, err := os.ReadDir(filepath.Join(w.root, place))
		for _, child := range children {
			if err == nil {
				err = w.at(filepath.Join(place, child.Name()), filepath.Join(path, child.Name()), links)
			}
		}
		return err
	case info.Mode()&os.ModeSymlink != 0:
		end, err := fs.RootPath(w.root, place)
		if err != nil {
			return err
		}
		end, err = filepath.Rel(w.root, end)
		if err != nil {
			return err
		}
		links = append(append([]string{}, links...), place)
		for _, link := range links {
			inside := end == "." || strings.HasPrefix(link+"/", end+"/")
			if info, err := os.Lstat(filepath.Join(w.root, end)); err == nil && info.IsDir() && inside {
				return fmt.Errorf("%s is a link in a circle", path)
			}
		}
		return w.at(end, path, links)
	}
	return fmt.Errorf("%s is no content", path)
}

func apply(asked question) (result answer) {
	root, err := os.MkdirTemp("", "layers-oracle")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(root)
	for _, layer := range asked.Layers {
		_, err := archive.Apply(context.Background(), root, bytes.NewReader(layer), archive.WithNoSameOwner())
		if err != nil {
			return answer{Refused: strings.ReplaceAll(err.Error(), root, "")}
		}
	}
	made := walk{root: root}
	for _, folder := range asked.Folders {
		before := len(made.entries)
		end, err := fs.RootPath(root, folder)
		if err == nil {
			end, err = filepath.Rel(root, end)
		}
		if err == nil {
			err = made.at(end, folder, nil)
		}
		// A folder may be absent, but no link to it may lead nowhere.
		if err != nil && !(errors.Is(err, os.ErrNotExist) && end == folder && len(made.entries) == before) {
			return answer{Spoilt: strings.ReplaceAll(err.Error(), root, "")}
		}
	}
	return answer{Entries: made.entries}
}

func list(layer []byte) (result answer) {
	reader := tar.NewReader(bytes.NewReader(layer))
	for {
		header, err := reader.Next()
		if err == io.EOF {
			return result
		}
		if err != nil {
			return answer{Refused: err.Error()}
		}
		sum, size, err := digest(reader)
		if err != nil {
			return answer{Refused: err.Error()}
		}
		kind := string(rune(header.Typeflag))
		// Names need not be Unicode.
		name, link := hex.EncodeToString([]byte(header.Name)), hex.EncodeToString([]byte(header.Linkname))
		result.Entries = append(result.Entries, entry{name, kind, link, size, sum})
	}
}

func main() {
	decoder := json.NewDecoder(bufio.NewReaderSize(os.Stdin, 1<<20))
	encoder := json.NewEncoder(os.Stdout)
	for decoder.More() {
		var asked question
		if err := decoder.Decode(&asked); err != nil {
			log.Fatal(err)
		}
		result := answer{}
		switch {
		case asked.Ask == "apply":
			result = apply(asked)
		case asked.Ask == "list" && len(asked.Layers) == 1:
			result = list(asked.Layers[0])
		default:
			log.Fatalf("%q is no question", asked.Ask)
		}
		if err := encoder.Encode(result); err != nil {
			log.Fatal(err)
		}
	}
}
