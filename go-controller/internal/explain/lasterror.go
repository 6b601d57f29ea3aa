// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
)

// maxLastError is how much of the last error of a session is shown, in bytes. That of our BGP daemon is shorter, even
// for a NOTIFICATION with a shutdown communication of 255 bytes (RFC 9003) after which the router was not reached. What
// a node that is taken over writes must not fill the terminal.
const maxLastError = 1024

// wholeError returns the message of a condition of a BGPPeer with the whole last error of the session that it names.
// Conditions contain the beginning only, because nodes write these errors, and the end says what to check.
func (v *overview) wholeError(peer, message string) string {
	for _, n := range v.objects.NodeStatuses {
		for i := range n.Status.Sessions {
			s := &n.Status.Sessions[i]
			begin := convert.SessionError(s.LastError)
			if s.Peer != peer || begin == s.LastError {
				continue
			}
			of := "node " + n.Name + ": "
			message = strings.Replace(message, of+begin, of+convert.Truncate(s.LastError, maxLastError), 1)
		}
	}
	return message
}
