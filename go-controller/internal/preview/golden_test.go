// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"fmt"
	"os"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/golden"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
)

// TestGolden edits the cluster of base.yaml. The files of an archive are
//
//	manifests.yaml  objects that are added to those of base.yaml
//	edit.yaml       the objects after the edit
//	want            the changes
func TestGolden(t *testing.T) {
	base, err := os.ReadFile("testdata/base.yaml")
	if err != nil {
		t.Fatal(err)
	}
	golden.RunArchives(t, "testdata/*.txtar", func(archive *txtar.Archive) (string, error) {
		before := &objects.Objects{}
		if _, err := before.Set(base); err != nil {
			return "", err
		}
		var after *objects.Objects
		now := time.Unix(1767225700, 0)
		for _, f := range archive.Files {
			switch f.Name {
			case "manifests.yaml":
				_, err = before.Set(f.Data)
			case "edit.yaml":
				after = before.Clone()
				_, err = after.Edit(f.Data, now)
			case "want":
			default:
				err = fmt.Errorf("unknown file %q", f.Name)
			}
			if err != nil {
				return "", err
			}
		}
		changes := Compare(before, after, now)
		return changes.Text(0) + fmt.Sprintf("unchanged: %d\n", changes.Unchanged), nil
	})
}
