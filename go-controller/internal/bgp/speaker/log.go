// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"fmt"

	"k8s.io/klog/v2"

	"github.com/osrg/gobgp/v3/pkg/log"
	packet "github.com/osrg/gobgp/v3/pkg/packet/bgp"
)

// logger takes gobgp's log: what it says of errors that nothing else tells goes to the
// session, the rest to ours. It is called with gobgp's locks held.
type logger struct {
	log    klog.Logger
	server *server
}

// The messages that tell of errors, as gobgp v3.37.0 words them.
const (
	logConnect  = "failed to connect"
	logState    = "state changed"
	logSent     = "sent notification"
	logReceived = "received notification"
)

func (l *logger) Debug(msg string, f log.Fields) {
	if c := l.server.session.Load(); c != nil {
		switch msg {
		case logConnect:
			c.failed(fmt.Sprint("connect: ", f["Error"]))
		case logState:
			if f["new"] == packet.BGP_FSM_IDLE.String() {
				if text := ending(fmt.Sprint(f["old"]), fmt.Sprint(f["reason"])); text != "" {
					c.ended(text)
				}
			}
		}
	}
	l.write(5, msg, f)
}

func (l *logger) Warn(msg string, f log.Fields) {
	if c := l.server.session.Load(); c != nil && (msg == logSent || msg == logReceived) {
		c.notified(notification(msg, f))
	}
	l.write(2, msg, f)
}

// write spares the work where nobody reads it: gobgp has something to say of each UPDATE.
func (l *logger) write(level int, msg string, f log.Fields) {
	if to := l.log.V(level); to.Enabled() {
		to.Info(msg, list(f)...)
	}
}

func (l *logger) Info(msg string, f log.Fields)  { l.write(3, msg, f) }
func (l *logger) Error(msg string, f log.Fields) { l.log.Error(nil, msg, list(f)...) }

// Panic and Fatal are called where gobgp finds itself in a state that cannot be. It goes on, and so do all other sessions.
func (l *logger) Panic(msg string, f log.Fields) { l.log.Error(nil, msg, list(f)...) }

// Fatal does not end the process, see Panic.
func (l *logger) Fatal(msg string, f log.Fields) { l.log.Error(nil, msg, list(f)...) }

func (*logger) SetLevel(log.LogLevel) {}

// GetLevel is such that failed connections are told.
func (*logger) GetLevel() log.LogLevel { return log.DebugLevel }

func list(f log.Fields) []any {
	values := make([]any, 0, 2*len(f))
	for _, key := range []string{"Key", "State", "Reason", "Code", "Subcode", "Communicated-Reason", "Data", "Error"} {
		if value, ok := f[key]; ok {
			values = append(values, key, fmt.Sprint(value))
		}
	}
	return values
}

// ending is why a session that was in the state old became idle; empty if it had not begun.
func ending(old, reason string) string {
	opening := old == packet.BGP_FSM_OPENSENT.String() || old == packet.BGP_FSM_OPENCONFIRM.String()
	switch {
	case reason == "graceful-restart", reason == "read-failed" && !opening:
		return "the connection was lost"
	case reason == "write-failed":
		return "nothing could be sent to the peer: does it ask for a hold time of 0, which is not supported?"
	case opening && reason == "read-failed":
		return "the peer closed the connection instead of opening the session: it may not know this node as a neighbor"
	case opening && reason == "invalid-msg":
		return "the peer refused to open the session: do both sides agree on the AS numbers?"
	case opening || old == packet.BGP_FSM_ESTABLISHED.String():
		return reason
	}
	return ""
}

// notification is the text of one that was sent or received.
func notification(msg string, f log.Fields) string {
	text := msg
	code, _ := f["Code"].(uint8)
	subcode, isCode := f["Subcode"].(uint8)
	if isCode {
		text += ": " + packet.NewNotificationErrorCode(code, subcode).String()
	} else { // Sent for an error of the peer.
		text += fmt.Sprint(": ", f["Data"])
	}
	if why, _ := f["Communicated-Reason"].(string); why != "" {
		text += fmt.Sprintf(", %q", why)
	}
	return text
}
