// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/crd"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/golden"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// TestGolden edits the cluster of base.yaml. The files of an archive are
//
//	manifests.yaml  objects that are added to those of base.yaml
//	edit.yaml       the objects after the edit
//	moves           lines "NAMESPACE/SERVICE NODE": requests to move Services
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
		var edited *objects.Edited
		now := time.Unix(1767225700, 0)
		for _, f := range archive.Files {
			switch f.Name {
			case "manifests.yaml":
				_, err = before.Set(f.Data)
			case "edit.yaml":
				after = before.Clone()
				edited, err = after.Edit(f.Data, "shop", now, crd.Check)
			case "moves":
				return moves(before, string(f.Data), now), nil
			case "want":
			default:
				err = fmt.Errorf("unknown file %q", f.Name)
			}
			if err != nil {
				return "", err
			}
		}
		changes := Compare(before, after, now)
		changes.Add(edited)
		return changes.Text(0) + fmt.Sprintf("unchanged: %d\n", changes.Unchanged), nil
	})
}

func moves(o *objects.Objects, lines string, now time.Time) string {
	var out strings.Builder
	for line := range strings.Lines(lines) {
		words := strings.Fields(line)
		namespace, name, _ := strings.Cut(words[0], "/")
		list, reason := Move(o, world.Key{Namespace: namespace, Name: name}, words[1], "id", now)
		fmt.Fprintf(&out, "%s to %s: %s\n", words[0], words[1], cmp.Or(reason, world.Count(len(list), "request")))
		for _, m := range list {
			fmt.Fprintf(&out, "%s: %s\n%s", m.Domain, m.Request, m.Text())
		}
	}
	return out.String()
}
