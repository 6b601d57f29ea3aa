// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"fmt"

	"k8s.io/klog/v2"

	"github.com/osrg/gobgp/v3/pkg/log"
)

// logger writes gobgp's log to klog. It is called with gobgp's locks held.
type logger struct {
	log    klog.Logger
	server *server
}

func (l *logger) Debug(msg string, f log.Fields) { l.write(5, msg, f) }
func (l *logger) Info(msg string, f log.Fields)  { l.write(3, msg, f) }
func (l *logger) Warn(msg string, f log.Fields)  { l.write(2, msg, f) }

// write formats nothing if the level is not enabled: gobgp logs every UPDATE.
func (l *logger) write(level int, msg string, f log.Fields) {
	if to := l.log.V(level); to.Enabled() {
		to.Info(msg, l.list(f)...)
	}
}

func (l *logger) Error(msg string, f log.Fields) { l.log.Error(nil, msg, l.list(f)...) }

// Panic and Fatal are called when gobgp detects an impossible state. gobgp continues, and so do all other sessions.
func (l *logger) Panic(msg string, f log.Fields) { l.log.Error(nil, msg, l.list(f)...) }

// Fatal does not end the process, see Panic.
func (l *logger) Fatal(msg string, f log.Fields) { l.log.Error(nil, msg, l.list(f)...) }

func (*logger) SetLevel(log.LogLevel) {}

// GetLevel returns the level from which gobgp formats messages.
func (l *logger) GetLevel() log.LogLevel {
	if l.log.V(5).Enabled() {
		return log.DebugLevel
	}
	return log.InfoLevel
}

// list adds the address of the peer. gobgp only knows that of the listener.
func (l *logger) list(f log.Fields) []any {
	var values []any
	if c := l.server.session.Load(); c != nil {
		values = append(values, "address", c.addr)
	}
	for _, key := range []string{"State", "Reason", "Code", "Subcode", "Communicated-Reason", "Data", "Error"} {
		if value, ok := f[key]; ok {
			values = append(values, key, fmt.Sprint(value))
		}
	}
	return values
}
