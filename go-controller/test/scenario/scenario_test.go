// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"golang.org/x/tools/txtar"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/golden"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/test/scenario/apiserver"
)

// maxLines limits the length of a scenario: a longer one shows more than one behaviour.
const maxLines = 100

const crds = "../../../dist/manifests/crds"

// The flags of klog select the log of the product, for example with -args -logtostderr -v=2. By default there is none.
func TestMain(m *testing.M) {
	klog.InitFlags(nil)
	_ = flag.Set("logtostderr", "false") // The flags exist.
	_ = flag.Set("stderrthreshold", "FATAL")
	klog.SetOutput(io.Discard)
	flag.Parse()
	// The others wait until a millisecond after the last error. On a virtual clock, which begins in the past, those are
	// decades.
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1]
	os.Exit(m.Run())
}

// loadKinds reads the kinds once, outside of all bubbles.
var loadKinds = sync.OnceValues(func() (apiserver.Kinds, error) { return apiserver.LoadKinds(crds) })

func TestScenarios(t *testing.T) {
	kinds, err := loadKinds()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios (%v)", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			at := slices.IndexFunc(archive.Files, func(f txtar.File) bool { return f.Name == "script" })
			if at < 0 {
				t.Fatalf("%s has no script", file)
			}
			var got string
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, kinds, archive)
				got = c.run(string(archive.Files[at].Data))
				c.stopAll()
			})
			golden.Compare(t, file, archive, "script", got, maxLines)
		})
	}
}
