// SPDX-License-Identifier: Apache-2.0

package main

import "strings"

// The expressions below compare addresses as text. An address becomes its 32 hexadecimal
// digits, an IPv4 address 8 digits after 24 dots: the order of the texts is the order of the addresses, and IPv4
// and IPv6 never overlap. An entry (CIDR, range or address) becomes one text of 64 digits and more:
//
//	digits 0-31   first address
//	digits 32-63  last address
//	the rest      the entry as the user wrote it
//
// One flat text, because the cost estimator of the API server does not track the sizes of
// values nested deeper than a list of texts, and then assumes the worst case.

// expand fills the parameters, written $name, of a CEL template.
func expand(template string, pairs ...string) string {
	for i := 0; i < len(pairs); i += 2 {
		pairs[i] = "$" + pairs[i]
	}
	return strings.NewReplacer(pairs...).Replace(strings.TrimSpace(template))
}

// let is body with value under a name. It also bounds the estimated cost of texts joined in
// body, which the estimator otherwise considers unbounded.
func let(name, value, body string) string {
	return expand("[$value].map($name, $body)[0]", "name", name, "value", value, "body", body)
}

// hexDigits is a list and not a text, because the size of its elements is known.
const hexDigits = `['0','1','2','3','4','5','6','7','8','9','a','b','c','d','e','f']`

// digits is the 32 digits of an address, given as an expression of lower-case text.
func digits(address string) string {
	return expand(`
($a.contains(':')
  ? $a.replace('::', ':' + '0:0:0:0:0:0:0:0:'.substring(2 * $a.split(':').filter(g, g != '').size()))
      .split(':').filter(g, g != '').map(g, ('000' + g).substring(size(g) - 1)).join('')
  : '........................' + $a.split('.').map(o, $hex[int(o) / 16] + $hex[int(o) % 16]).join(''))`,
		"a", address, "hex", hexDigits)
}

// lastOf is the digits of the last address of a network, given its first and how many
// of the 128 bits are fixed.
func lastOf(first, bits string) string {
	return expand(`
$k.substring(0, $n / 4)
  + ($n % 4 == 0 ? '' : $hex['0123456789abcdef'.indexOf($k.substring($n / 4, $n / 4 + 1)) + [0, 7, 3, 1][$n % 4]])
  + 'ffffffffffffffffffffffffffffffff'.substring(($n + 3) / 4)`,
		"k", first, "n", bits, "hex", hexDigits)
}

// sound is true for an entry that the rules of AddressRange accept. All rules run, regardless of the
// results of others, so those that compare must skip values that cannot be parsed.
const sound = `
(isCIDR(a)
  ? cidr(a) == cidr(a).masked() && !(a.contains(':') && a.contains('.'))
  : a.split('-').size() <= 2 && a.split('-').all(p, isIP(p.trim())) && !(a.contains(':') && a.contains('.')))`

// entries is the entries of a list expression, as described above.
func entries(list string) string {
	return expand(`
$list.filter(a, $sound)
  .map(a, [a.split('/')[0].split('-').map(p, p.trim().lowerAscii()).map(p, $digits).join('')]
    .map(k, k.substring(0, 32) + (size(k) == 64 ? k.substring(32) : $last) + a)[0])`,
		"list", list, "sound", strings.TrimSpace(sound), "digits", digits("p"),
		"last", lastOf("k", "(isCIDR(a) ? cidr(a).prefixLength() + (a.contains(':') ? 0 : 96) : 128)"))
}

func first(entry string) string   { return entry + ".substring(0, 32)" }
func last(entry string) string    { return entry + ".substring(32, 64)" }
func written(entry string) string { return entry + ".substring(64)" }

func overlap(a, b string) string {
	return expand(`($fa <= $lb && $fb <= $la)`, "fa", first(a), "la", last(a), "fb", first(b), "lb", last(b))
}

// within is true if a is part of b.
func within(a, b string) string {
	return expand(`($fb <= $fa && $la <= $lb)`, "fa", first(a), "la", last(a), "fb", first(b), "lb", last(b))
}
