// SPDX-License-Identifier: Apache-2.0

// Package printable makes text of others safe for terminals, log files and shells. Nodes, tenants and routers write
// much of what the programs print, for example the last error of a BGP session or the message of a condition.
//
// Invariants:
//   - Line, Clean and Writer leave no character that is not graphic (Unicode classes Cc, Cf, Zl, Zp, unassigned and
//     private ones), except line feeds and tabs in the output of Writer. Such a character becomes its escape in JSON,
//     so that JSON stays the same JSON.
//   - A shell reads what Quote returns as one word that is no option, whatever the word is.
package printable
