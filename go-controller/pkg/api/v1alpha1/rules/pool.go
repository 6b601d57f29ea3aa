// SPDX-License-Identifier: Apache-2.0

package main

// rule is one entry of x-kubernetes-validations: the expression, the field path, an expression for a
// message that names the values, and a message for the case that this expression fails.
type rule struct{ rule, field, message, fallback string }

// poolRules are the rules of the spec of IPAddressPool that compare addresses.
func poolRules() []rule {
	return []rule{ordered("addresses"), ordered("exclude"), disjoint(), excludeInside(), reservedInside()}
}

// ordered: a range ends where it begins or later.
func ordered(field string) rule {
	list := "self." + field
	return rule{
		field: "." + field,
		rule: expand(`!has($list) || $all.all(e, $first <= $last)`,
			"list", list, "all", entries(list), "first", first("e"), "last", last("e")),
		message: let("es", entries(list), expand(`es.filter(e, $first > $last).map(e, $written).join(', ')`,
			"first", first("e"), "last", last("e"), "written", written("e"))) + " + ' ends before it begins'",
		fallback: "a range ends before it begins",
	}
}

// disjoint: no two entries overlap. Equal entries are refused by the list type.
func disjoint() rule {
	return rule{
		field: ".addresses",
		rule: "!has(self.addresses) || " + let("es", entries("self.addresses"), expand(
			`es.all(x, es.all(y, x == y || !$overlap))`, "overlap", overlap("x", "y"))),
		message: "'these overlap: ' + " + let("es", entries("self.addresses"), expand(`
es.filter(x, es.exists(y, x != y && $overlap)).map(x, $written).join(', ')`,
			"overlap", overlap("x", "y"), "written", written("x"))),
		fallback: "two entries overlap",
	}
}

// excludeInside: excluded addresses are inside one entry of addresses.
func excludeInside() rule {
	return rule{
		field: ".exclude",
		rule: "!has(self.exclude) || !has(self.addresses) || " + let("es", entries("self.addresses"),
			expand(`$excluded.all(x, es.exists(e, $within))`, "excluded", entries("self.exclude"), "within", within("x", "e"))),
		message: let("es", entries("self.addresses"), let("xs", entries("self.exclude"), expand(`
xs.filter(x, !es.exists(e, $within)).map(x, $written).join(', ')`,
			"within", within("x", "e"), "written", written("x")))) + " + ' is not inside one entry of addresses'",
		fallback: "an entry is not inside one entry of addresses",
	}
}

// reservedInside: reserved addresses are in the pool.
func reservedInside() rule {
	return rule{
		field: ".reservations",
		rule: "!has(self.reservations) || !has(self.addresses) || " + let("es", entries("self.addresses"), expand(`
self.reservations.all(r, $reserved.all(x, es.exists(e, $within)))`,
			"reserved", entries("r.addresses"), "within", within("x", "e"))),
		message: let("es", entries("self.addresses"),
			let("rs", "self.reservations.map(r, "+entries("r.addresses")+")", expand(`
rs.map(xs, xs.filter(x, !es.exists(e, $within)).map(x, $written).join(', ')).filter(t, t != '').join(', ')`,
				"within", within("x", "e"), "written", written("x")))) + " + ' is not in addresses'",
		fallback: "an address is not in addresses",
	}
}
