// SPDX-License-Identifier: Apache-2.0

package metallb

import (
	"path/filepath"

	"golang.org/x/tools/txtar"
)

// goldens returns the archives of the goldens.
func goldens() ([]*txtar.Archive, error) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		return nil, err
	}
	var out []*txtar.Archive
	for _, file := range files {
		a, err := txtar.ParseFile(file)
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}
