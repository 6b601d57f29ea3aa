// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"net/netip"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/neighbour"
)

// A host that sends ARP packets without end costs a bounded number of reads. Silence means nothing meanwhile.
func TestFloodIsReadAtALimitedRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, err := newMetrics(nil)
		if err != nil {
			t.Fatal(err)
		}
		l := newLinks(nil)
		l.metrics = m
		read, end, pauses := 0, time.Now().Add(time.Minute), pause{}
		go l.listen(t.Context(), "eth1", func() (neighbour.Answer, error) {
			switch now := time.Now(); {
			case !now.Before(end):
				return neighbour.Answer{}, os.ErrClosed
			case read > maxAnswerRate && !pauses.isRecent(now):
				t.Errorf("answers are relied on %s before the end of the flood", end.Sub(now))
			}
			read++
			return claimOf(netip.MustParseAddr("10.50.0.9"), otherMAC), nil
		}, &pauses)
		go func() {
			for {
				select {
				case <-l.received:
				case <-t.Context().Done():
					return
				}
			}
		}()
		<-time.After(time.Minute + pauseMemory)
		synctest.Wait()
		if most := 62 * maxAnswerRate; read > most {
			t.Errorf("%d frames read in a minute, want %d at most", read, most)
		}
		if pauses.isRecent(time.Now()) {
			t.Error("answers are not relied on after the flood")
		}
	})
}
