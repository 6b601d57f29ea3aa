// SPDX-License-Identifier: Apache-2.0

package container

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// image is what dist/images/Containerfile makes of the last stage.
type image struct {
	root       string
	entrypoint string
}

// buildImage writes the files that the last stage copies to a directory. Those of the stage before are the program, and
// files of this machine.
func buildImage(containerfile, program, root string) (*image, error) {
	text, err := os.ReadFile(containerfile)
	if err != nil {
		return nil, err
	}
	i := &image{root: root}
	var base string
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
		case words[0] == "FROM":
			base, i.entrypoint = words[1], ""
			if err := os.RemoveAll(root); err != nil {
				return nil, err
			}
		case base == "scratch" && words[0] == "COPY":
			if len(words) != 4 || !strings.HasPrefix(words[1], "--from=build") {
				return nil, fmt.Errorf("%s: %q is not a copy of one file from stage build", containerfile, line)
			}
			from := words[2]
			if strings.HasPrefix(from, "/out/") {
				from = program
			}
			if err := copyFile(from, filepath.Join(root, words[3])); err != nil {
				return nil, err
			}
		case base == "scratch" && words[0] == "ENTRYPOINT":
			i.entrypoint = strings.Trim(words[1], `[]"`)
		}
	}
	if base != "scratch" || i.entrypoint == "" {
		return nil, fmt.Errorf("%s: the last stage is from %q with entrypoint %q, want scratch and an entrypoint",
			containerfile, base, i.entrypoint)
	}
	return i, nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, info.Mode().Perm())
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	return out.Close()
}
